"""One-token edits of the lesson kernels: which ones there are, and which ones a seed draws.

A library for scripts/token_edits.py; it reads source and never imports it. An edit puts one token of a
kernel's body in the place of another: an operator, a comparison, a constant, an axis, or a name by one of the
same kind that is in scope. Comments, signatures and docstrings are left alone.
"""

import ast
import hashlib
import io
import random
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEED = 0
EDITS = 40  # a kernel

# Kernel -> its file and its functions: what a reader would call one kernel.
KERNELS = {
    "online_softmax": ("online_softmax", ("online_softmax_step", "_online_softmax_kernel")),
    "l2_naive": ("l2_paged_decode", ("_naive_paged_decode_kernel",)),
    "l2_paged": ("l2_paged_decode", ("_load_k_transposed", "attend_pages", "_paged_decode_kernel")),
    "l3_split": ("l3_split_kv_decode", ("split_range", "_split_kernel")),
    "l3_combine": ("l3_split_kv_decode", ("_combine_kernel",)),
    "l3_combine_unnormalized": ("l3_unnormalized_partials", ("_combine_unnormalized_kernel",)),
}

BINARY = {
    "+": ("-", "*"), "-": ("+", "*"), "*": ("+", "-"), "/": ("*", "-"), "//": ("%", "*"), "&": ("|",),
    "<": ("<=", ">", ">="), ">": (">=", "<", "<="), "==": ("!=",), "+=": ("-=",), "-=": ("+=",),
}  # fmt: skip
UNARY = {"-": ("+",)}
CONSTANTS = {
    "0": ("1",), "1": ("0", "2"), "2": ("1", "3"), "0.0": ("1.0",), "1.0": ("0.0", "2.0"),
    '"inf"': ('"0"',), '"ieee"': ('"tf32"',), "False": ("True",),
}  # fmt: skip
ATTRIBUTES = {
    "maximum": ("minimum",), "minimum": ("maximum",), "max": ("min", "sum"), "sum": ("max",),
    "exp": ("exp2", "log"), "log": ("log2", "exp"), "program_id": ("num_programs",),
    "num_programs": ("program_id",), "int64": ("int32",), "float32": ("float16",),
}  # fmt: skip
# Names that stand for the same kind of thing, beside those that their form tells: x_ptr, stride_x, OFFS.
KINDS = {
    "integer": "seq_id q_head kv_head split_id page page_id page_begin page_end pages_per_split num_pages "
    "num_splits num_qo_heads num_scores seq_len head_dim start_n start_s out row",
    "row": "m_i l_i m_new l_new m_safe l_safe alpha scores p s w lse lse_s m_s l_s sm_scale",
    "tile": "q k v k_t values acc o o_s acc_s",
    "flag": "SWAP_K_STRIDES NORMALIZED",
}
_KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}


@dataclass(frozen=True)
class Edit:
    """One token of a function's body, and what stands in its place.

    token: its number among the tokens of the body, comments left out; code: its line, without comment.
    """

    kernel: str
    function: str
    token: int
    before: str
    after: str
    code: str

    @property
    def key(self) -> str:
        """Names the edit in a record and on a command line."""
        return f"{self.function}[{self.token}] {self.before} -> {self.after}"

    @property
    def file(self) -> str:
        """What it edits, from the root."""
        return f"kernels/{KERNELS[self.kernel][0]}.py"

    def place(self) -> tokenize.TokenInfo:
        """The token as it stands in the file now."""
        return _bodies(self.file)[self.function][self.token]

    def apply(self, text: str) -> str:
        """The text of the file with this edit."""
        token, rows = self.place(), text.splitlines(keepends=True)
        (row, begin), (_, end) = token.start, token.end
        assert rows[row - 1][begin:end] == self.before, f"{self.file} changed under {self.key}"
        rows[row - 1] = rows[row - 1][:begin] + self.after + rows[row - 1][end:]
        return "".join(rows)


def code_tokens(text: str) -> list[tokenize.TokenInfo]:
    """The tokens of a source that are code: no comments, no layout."""
    wanted = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
    return [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type in wanted]


@cache
def _functions(file: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


@cache
def _bodies(file: str) -> dict[str, list[tokenize.TokenInfo]]:
    """Function -> the tokens of its body, its docstring left out."""
    tokens = code_tokens((ROOT / file).read_text(encoding="utf-8"))
    bodies = {}
    for name, node in _functions(file).items():
        first = node.body[1] if ast.get_docstring(node) is not None else node.body[0]
        bodies[name] = [t for t in tokens if first.lineno <= t.start[0] <= node.end_lineno]
    return bodies


def code_hash(kernel: str) -> str:
    """Of a kernel's functions, comments and docstrings left out; the rest of the file does not count."""
    module, functions = KERNELS[kernel]
    file, text = f"kernels/{module}.py", []
    for name in functions:
        node, body = _functions(file)[name], _bodies(file)[name]
        text += [name, *(arg.arg for arg in node.args.args), *(token.string for token in body)]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:16]


def _kind(name: str) -> str | None:
    """Which other names could stand in this one's place; None: none."""
    if name in _KIND_OF:
        return _KIND_OF[name]
    for prefix, suffix in (("", "_ptr"), ("stride_", ""), ("mask_", ""), ("offs_", "")):
        if name.startswith(prefix) and name.endswith(suffix):
            return prefix + suffix
    return "constexpr" if name.isupper() else None


def _names(node: ast.FunctionDef) -> tuple[dict[str, tuple[int, int]], set[tuple[int, int]]]:
    """Where each name is first bound, and where names are read (or added to)."""
    bound = {arg.arg: (arg.lineno, arg.col_offset) for arg in node.args.args}
    read = set()
    for part in ast.walk(node):
        if isinstance(part, ast.AugAssign):
            read.add((part.target.lineno, part.target.col_offset))
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            read.add((part.lineno, part.col_offset))
        elif isinstance(part, (ast.Assign, ast.For)):
            # A name is bound once its statement is over; a loop's, once its first line is.
            target = part.targets[0] if isinstance(part, ast.Assign) else part.target
            value = part.value if isinstance(part, ast.Assign) else part.iter
            after = (value.end_lineno, value.end_col_offset)
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    bound[name.id] = min(bound.get(name.id, after), after)
    return bound, read


def _unary(node: ast.FunctionDef) -> set[tuple[int, int]]:
    """Where a sign stands that no operand precedes."""
    return {(n.lineno, n.col_offset) for n in ast.walk(node) if isinstance(n, ast.UnaryOp)}


def replacements(file: str, function: str) -> dict[int, tuple[str, ...]]:
    """Number of a token -> what may stand in its place."""
    node, tokens = _functions(file)[function], _bodies(file)[function]
    (bound, read), unary, found = _names(node), _unary(node), {}
    for i, token in enumerate(tokens):
        previous = tokens[i - 1].string if i else ""
        options: tuple[str, ...] = ()
        if token.start in unary:
            options = UNARY.get(token.string, ())
        elif token.type == tokenize.OP:
            options = BINARY.get(token.string, ())
        elif previous == ".":
            options = ATTRIBUTES.get(token.string, ())
        elif token.string in CONSTANTS:
            options = CONSTANTS[token.string]
        elif token.start in read and (kind := _kind(token.string)):
            here = [n for n, at in bound.items() if at <= token.start and _kind(n) == kind]
            others = [name for name in here if name != token.string]
            options = tuple(sorted(others))
            alone = previous == "=" and tokens[i - 2].string == "mask" and tokens[i + 1].string in (",", ")")
            options += ("None",) if alone else ()  # the mask removed
        if options:
            found[i] = options
    return found


@cache
def draw(kernel: str) -> tuple[Edit, ...]:
    """The kernel's edits: EDITS different ones, each token of its bodies as likely as any other."""
    module, functions = KERNELS[kernel]
    file = f"kernels/{module}.py"
    rows = (ROOT / file).read_text(encoding="utf-8").splitlines()
    pool = [(name, i, after) for name in functions for i, after in sorted(replacements(file, name).items())]
    rng, edits = random.Random(f"{SEED}/{kernel}"), {}
    while len(edits) < EDITS:
        name, i, options = pool[rng.randrange(len(pool))]
        after = options[rng.randrange(len(options))]
        token = _bodies(file)[name][i]
        code = rows[token.start[0] - 1].partition("#")[0].strip()
        edit = Edit(kernel, name, i, token.string, after, code)
        edits[edit.key] = edit
    return tuple(edits.values())


def all_edits() -> list[Edit]:
    """Those of every kernel, in the order of the lessons."""
    return [edit for kernel in KERNELS for edit in draw(kernel)]
