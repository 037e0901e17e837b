"""What the page's torch has not is told by name, everything that the project uses of torch is there."""

import ast
import json
from pathlib import Path

import torch

from tests.runner.helpers import ROOT, in_page
from tests.runner.torch_parity import standin

HERE = "this page's small stand-in for PyTorch"
# program -> the name that has to be told.
MISSING = {
    "torch.fft": "torch.fft",
    "torch.linalg.norm(a)": "torch.linalg",
    "torch.nn.Linear(2, 2)": "torch.nn.Linear",
    "torch.nn.functional.gelu(a)": "torch.nn.functional.gelu",
    "torch.multinomial(p, 2)": "torch.multinomial",
    "torch.complex64": "torch.complex64",
    "torch.set_default_dtype(torch.float64)": "torch.set_default_dtype",
    "torch.testing.make_tensor(2)": "torch.testing.make_tensor",
    "torch.library.Library('x', 'DEF')": "torch.library.Library",
    "torch.cuda.synchronize()": "torch.cuda.synchronize",
    "torch.cuda.Stream()": "torch.cuda.Stream",
    "torch.cuda.Event(enable_timing=True)": "torch.cuda.Event",
    "torch.cuda.CUDAGraph()": "torch.cuda.CUDAGraph",
    "torch.zeros(2, device='cuda')": "the device 'cuda'",
    "torch.device('cuda:0')": "the device 'cuda'",
    "a.cuda()": "Tensor.cuda",
    "a.to('cuda')": "the device 'cuda'",
    "a.pin_memory()": "Tensor.pin_memory",
    "torch.zeros(2, pin_memory=True)": "pin_memory=True",
    "torch.zeros(2, requires_grad=True)": "requires_grad=True",
    "torch.randn(2, requires_grad=True)": "requires_grad=True",
    "a.requires_grad_()": "Tensor.requires_grad_",
    "a.backward()": "Tensor.backward",
    "a.scatter_(0, i, a)": "Tensor.scatter_",
    "a.register_hook(print)": "Tensor.register_hook",
    "torch.compile(lambda x: x)": "torch.compile",
    "torch.from_numpy(a.numpy())": "torch.from_numpy",
    "torch.as_tensor(a.numpy())": "torch.as_tensor",
    "torch.frombuffer(bytearray(8), dtype=torch.float32)": "torch.frombuffer",
    "torch.Tensor([1.0, 2.0])": "torch.Tensor",
    "torch.tensor([1j])": "complex",
    "torch.add(a, b, out=a)": "torch.add(out=...)",
    "torch.sum(a, out=z)": "torch.sum(out=...)",
    "torch.randn(2, out=v)": "torch.randn(out=...)",
    "torch.sort(a, nonsense=1)": "torch.sort(nonsense=...)",
    "a.sum(out=z)": "Tensor.sum(out=...)",
    "a.norm(p=1)": "p=1",
    "F.silu(a, inplace=True)": "inplace=True",
    "F.scaled_dot_product_attention(m, m, m, dropout_p=0.5)": "dropout_p",
    "torch.Generator().get_state()": "Generator.get_state",
    "torch.Generator(device='cuda')": "the device 'cuda'",
    "a.untyped_storage().resize_(1000)": "UntypedStorage.resize_(1000)",
    "a.untyped_storage().tolist()": "UntypedStorage.tolist",
    "a.clone(memory_format=torch.channels_last)": "torch.channels_last",
    "import torch.distributed; result = 0": "torch.distributed",
    "from torch.utils.data import DataLoader; result = 0": "torch.utils",
    "a.bfloat16() + 1": "bf16 is not computed here: add in torch.bfloat16",
    "a.bfloat16() @ b.bfloat16().T": "bf16 is not computed here: matmul",
    "torch.exp(a.bfloat16())": "bf16 is not computed here: exp",
    "a.bfloat16().sum()": "bf16 is not computed here: sum",
    "a.bfloat16() == b.bfloat16()": "bf16 is not computed here",
    "a.bfloat16().numpy()": "bf16 is not computed here",
    "a.to(torch.float8_e4m3fn)": "float8 is not computed here: a conversion in torch.float8_e4m3fn",
    "torch.zeros(2, dtype=torch.float8_e5m2).float()": "float8 is not computed here",
    "torch.zeros(2, dtype=torch.float8_e4m3fn) * 2": "float8 is not computed here",
}
# Names of torch.cuda that are here; the others say that there is no GPU.
CUDA = {"cuda.is_available", "cuda.device_count", "cuda.Stream", "cuda.Event", "cuda.CUDAGraph"}
KINDS = ("AttributeError", "NotImplementedError", "ModuleNotFoundError")
FOLDERS = ("kernels", "scripts/traces", "snippets/drills", "snippets/runs", "tests/helpers")
FILES = (
    "mutant_checks mutant_problems mutant_findings mistakes mistakes_softmax diagnose part_checks "
    "drill_cases drill_cases_l0 drill_cases_l1 tracer trace_record trace_examples memory_policies"
)


def test_what_is_missing_is_told_by_name(tmp_path):
    for (program, name), got in zip(MISSING.items(), standin(list(MISSING), tmp_path), strict=True):
        assert got.get("raises") in KINDS, (program, got)
        assert name in got["text"] and HERE in got["text"], (program, got)


def test_every_other_name_of_pytorch_is_told(tmp_path):
    """Whatever PyTorch has is here or is refused: no name is silently something else."""
    names = [f"torch.{name}" for name in dir(torch) if not name.startswith("_")]
    names += [f"torch.Tensor.{name}" for name in dir(torch.Tensor) if not name.startswith("_")]
    functional = dir(torch.nn.functional)
    names += [f"torch.nn.functional.{name}" for name in functional if not name.startswith("_")]
    asked = tmp_path / "names.json"
    asked.write_text(json.dumps(names), encoding="utf-8")
    found = in_page(
        f"""
        import json
        from pathlib import Path
        sys.path.insert(0, {str(ROOT / "scripts/runner/standins")!r})
        import torch
        one = torch.zeros(1, 1)
        result = {{}}
        for name in json.loads(Path(sys.argv[2]).read_text()):
            owner, _, last = name.rpartition(".")
            try:
                getattr({{"torch": torch, "torch.Tensor": one}}.get(owner, torch.nn.functional), last)
            except Exception as error:
                result[name] = [type(error).__name__, str(error)]
        """,
        boot=False, arguments=(str(asked),),
    )  # fmt: skip
    assert len(found) > 500
    for name, (kind, text) in found.items():
        assert kind == "AttributeError" and HERE in text, (name, kind, text)
        assert name.removeprefix("torch.") in text or name in text, (name, text)


def used() -> dict[str, Path]:
    """Each `torch.x`, `torch.x.y` and `F.x` in the sources that a page may run."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]
    paths += [ROOT / "scripts" / f"{name}.py" for name in FILES.split()]
    found = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            if text.startswith(("torch.", "F.")) and text.replace(".", "").replace("_", "").isalnum():
                found.setdefault(text.replace("F.", "nn.functional.").removeprefix("torch."), path)
    return found


def test_what_the_project_uses_is_there(tmp_path):
    """All of it, but for what only a GPU has: that says so, where it is used."""
    names = used()
    assert {"einsum", "Generator", "library.custom_op", "nn.functional.rms_norm", "cuda.Event"} <= set(names)
    found = standin([f"result = torch.{name} is not Ellipsis" for name in names], tmp_path)
    for (name, path), got in zip(names.items(), found, strict=True):
        if name.startswith("cuda.") and name not in CUDA:
            assert got["raises"] == "AttributeError" and "there is no GPU in a page" in got["text"], name
        else:
            assert "raises" not in got, (path, got)


def test_it_says_that_it_is_not_pytorch():
    docstring = ast.get_docstring(
        ast.parse((ROOT / "scripts/runner/standins/torch/__init__.py").read_text(encoding="utf-8"))
    )
    assert docstring.startswith("NOT PyTorch") and "run unchanged" in docstring
