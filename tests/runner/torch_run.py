"""Programs in PyTorch, evaluated and written down: by the real one in the tests, by the stand-in in a child.

    encode(evaluate("a + b"))      {"tensor": "float32", "shape": [3], "stride": [1], "bits": "..."}

A program is an expression over `namespace()`, or statements that leave `result`; an error is its type and
text.
"""

import math
import warnings

import torch

SETUP = """
def table(*shape, dtype=torch.float32, step=37, by=8.0):
    count = 1
    for n in shape:
        count *= n
    numbers = [(i * step % 101 - 50) / by for i in range(count)]
    return torch.tensor(numbers, dtype=torch.float64).to(dtype).view(shape)

a, b, v = table(3, 4), table(3, 4, step=53), table(4, step=29)
a16, b16, v16 = a.half(), b.half(), v.half()
a64, b64 = a.double() / 3, b.double() / 7
i, j = torch.tensor([[5, -3, 7, 0], [2, 9, -8, 1], [4, 4, -1, 6]]), torch.tensor([3, -2, 5, 1])
i32, i16, i8 = i.to(torch.int32), i.to(torch.int16), i.to(torch.int8)
u8 = torch.tensor([[5, 3, 7, 0], [2, 9, 8, 1], [4, 4, 1, 6]], dtype=torch.uint8)
t, t2 = a > 0, b > 1
z, zi, zb = torch.tensor(1.75), torch.tensor(3), torch.tensor(True)
z64 = torch.tensor(2.1, dtype=torch.float64)
zi32, z16 = torch.tensor(2, dtype=torch.int32), torch.tensor(0.1, dtype=torch.float16)
m = table(2, 3, 4, step=13)
n = torch.tensor([1.0, -math.inf, math.nan, math.inf, 0.0, -2.5])
e, e2 = torch.empty(0), torch.empty(0, 3)
p = a.abs() + 0.5
s = m.transpose(0, 2)
idx, idx2 = torch.tensor([2, 0, 1]), torch.tensor([1, 1, 0])

def said(call):
    try:
        return call()
    except AssertionError as error:
        return str(error)
"""


def namespace() -> dict:
    """The tensors that programs speak of."""
    names = {"torch": torch, "math": math, "F": torch.nn.functional}
    exec(SETUP, names)
    return names


def evaluate(program: str, names: dict | None = None):
    """What a program gives."""
    names = namespace() if names is None else names
    if "result" in program:
        exec(program, names)
        return names["result"]
    return eval(program, names)


def encode(value) -> object:
    """A result as JSON."""
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        known = {"tensor": kind, "shape": list(value.shape), "stride": list(value.stride())}
        if value.device.type == "meta":
            return known | {"bits": "meta"}
        bits = value.contiguous()
        if kind == "bfloat16":
            bits = bits.view(torch.int16)
        return known | {"bits": bits.numpy().tobytes().hex()}
    if isinstance(value, (list, tuple)):
        return {"items": [encode(item) for item in value], "kind": type(value).__name__}
    if isinstance(value, dict):
        return {"items": [encode(item) for item in value.items()], "kind": "dict"}
    if isinstance(value, (bool, int, str)) or value is None:
        return {"plain": value, "kind": type(value).__name__}
    if isinstance(value, float):
        return {"plain": value.hex(), "kind": "float"}
    return {"plain": str(value), "kind": type(value).__name__}


def run(program: str) -> dict:
    """A program's result, or what it raises."""
    names = namespace()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"value": encode(evaluate(program, names))}
    except Exception as error:
        return {"raises": type(error).__name__, "text": str(error)}
