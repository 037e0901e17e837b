"""The measured records in snippets/results: their form, their provenance, and which code they measured.

One JSON file a GPU and lesson, snippets/results/<gpu slug>/<lesson>.json. kind "measured" is ours and carries
its whole provenance; kind "cited" repeats published figures, under names of their own (printed_us,
printed_gbps), and may lack driver and versions. Nothing here needs torch, except `provenance`, which runs
where a GPU is.
"""

import ast
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "snippets/results"
SCHEMA = 1

TEXT, NUMBER = (str,), (int, float)
# Dotted field -> types, for each kind.
MEASURED = {
    "schema": (int,), "kind": TEXT, "lesson": TEXT, "gpu.name": TEXT, "gpu.slug": TEXT, "gpu.num_sms": (int,),
    "gpu.l2_bytes": (int,), "gpu.memory_bytes": (int,), "software.driver": TEXT, "software.cuda": TEXT,
    "software.torch": TEXT, "software.triton": TEXT, "software.python": TEXT, "date": TEXT, "command": TEXT,
    "code_hash": (dict,), "rows": (list,),
}  # fmt: skip
CITED = {
    "schema": (int,), "kind": TEXT, "lesson": TEXT, "gpu.name": TEXT, "gpu.slug": TEXT,
    "source.zh": TEXT, "source.en": TEXT, "source.url": (str, type(None)), "rows": (list,),
}  # fmt: skip
SWEEPS = ("launch_sweep", "split_choice", "tile_sweep")  # of no lesson; their rows have a form of their own
ROW = {"variant": TEXT, "batch_size": (int,), "ctx": (int,)}
FIGURES = ("p20", "p50", "p80")


class RecordError(ValueError):
    """A record that the site cannot show; names the file, the field, what it is and what is wanted."""


def validate(record: dict, where: str) -> None:
    """Raise RecordError unless `record` has every field of its kind; `where` names the file."""
    kind = record.get("kind")
    if kind not in ("measured", "cited"):
        raise RecordError(f"{where}: kind is {kind!r}; wanted 'measured' or 'cited'")
    _check(record, MEASURED if kind == "measured" else CITED, where)
    if record["schema"] != SCHEMA:
        raise RecordError(f"{where}: schema is {record['schema']}; this code reads {SCHEMA}")
    slug = slug_of(record["gpu"]["name"]) + ("-cited" if kind == "cited" else "")
    if record["gpu"]["slug"] != slug:
        raise RecordError(f"{where}: gpu.slug is {record['gpu']['slug']!r}; wanted {slug!r}")
    if record["lesson"] in SWEEPS:
        return
    for i, row in enumerate(record["rows"]):
        _check(row, ROW, f"{where}: rows[{i}]")
        if kind == "cited":
            _check(row, {"printed_us": NUMBER}, f"{where}: rows[{i}]")
        elif not row.get("error"):
            _check(row, {f"latency_us.{p}": NUMBER for p in FIGURES}, f"{where}: rows[{i}]")


def _check(item: object, fields: dict[str, tuple[type, ...]], where: str) -> None:
    for name, types in fields.items():
        value = item
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                raise RecordError(f"{where}: {name} is missing")
            value = value[part]
        if not isinstance(value, types) or isinstance(value, bool):
            wanted = " or ".join(t.__name__ for t in types)
            raise RecordError(f"{where}: {name} is {value!r}; wanted {wanted}")


def load(path: Path) -> dict:
    """Read and validate one record."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise RecordError(f"{path}: not JSON: {error}") from error
    validate(record, str(path))
    return record


def save(path: Path, record: dict) -> None:
    """Validate and write one record; a reader never sees half of it."""
    validate(record, str(path))
    _write(path, record)


def load_rows(path: Path) -> list[dict]:
    """The rows of an unfinished run, or none where there is no such file."""
    return json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []


def save_rows(path: Path, rows: list[dict]) -> None:
    """Keep the rows of an unfinished run."""
    _write(path, {"rows": rows})


def _write(path: Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def all_records(results: Path = RESULTS) -> list[dict]:
    """Every record under `results`: the project's own card first, then by name, cited ones last."""
    paths = [path for path in sorted(results.glob("*/*.json")) if not path.name.endswith(".partial.json")]
    loaded = [load(path) for path in paths]
    for path, record in zip(paths, loaded, strict=True):
        if (path.parent.name, path.stem) != (record["gpu"]["slug"], record["lesson"]):
            raise RecordError(
                f"{path}: wanted {record['gpu']['slug']}/{record['lesson']}.json by its content"
            )
    return sorted(
        loaded, key=lambda r: (r["kind"] == "cited", r["gpu"]["slug"] != "nvidia-h200", r["gpu"]["name"])
    )


def slug_of(name: str) -> str:
    """A GPU's name as a folder name: "NVIDIA H200" -> "nvidia-h200"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def code_hash(paths: list[str], root: Path = ROOT) -> dict[str, str]:
    """{path: hash} of these files and all they import from kernels/, comments and docstrings left out."""
    hashes: dict[str, str] = {}
    todo = list(paths)
    while todo:
        path = todo.pop()
        if path in hashes:
            continue
        tree = ast.parse((root / path).read_text(encoding="utf-8"), path)
        hashes[path] = hashlib.sha256(_canonical(tree).encode()).hexdigest()[:16]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("kernels."):
                todo.append(node.module.replace(".", "/") + ".py")
    return dict(sorted(hashes.items()))


def _canonical(node: object) -> str:
    """A syntax tree as text, the same in every Python: no positions, no empty fields, no docstrings."""
    if isinstance(node, list):
        return f"[{','.join(map(_canonical, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
        fields["body"] = fields["body"][1:]
    for position_or_hint in ("ctx", "kind", "type_comment", "type_ignores"):
        fields.pop(position_or_hint, None)
    parts = [
        f"{name}={_canonical(value)}" for name, value in fields.items() if value is not None and value != []
    ]
    return f"{type(node).__name__}({','.join(parts)})"


def outdated(record: dict, root: Path = ROOT) -> list[str]:
    """The files that a record measured and that are no longer the same code."""
    old = record.get("code_hash", {})
    present = [path for path in old if (root / path).is_file()]
    now = code_hash(present, root)
    return [path for path in old if now.get(path) != old[path]]


def provenance(lesson: str, kernels: list[str] | None = None) -> dict:
    """What every measured record says about its GPU, software, date, command and code; needs a CUDA GPU."""
    import torch
    import triton

    gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "schema": SCHEMA,
        "kind": "measured",
        "lesson": lesson,
        "gpu": {
            "name": gpu.name, "slug": slug_of(gpu.name), "num_sms": gpu.multi_processor_count,
            "l2_bytes": gpu.L2_cache_size, "memory_bytes": gpu.total_memory,
            "compute_capability": f"{gpu.major}.{gpu.minor}",
        },
        "software": {
            "driver": driver_version(), "cuda": torch.version.cuda or "none", "torch": torch.__version__,
            "triton": triton.__version__, "python": platform.python_version(),
        },
        "date": datetime.now(UTC).date().isoformat(),
        "command": command_line(sys.argv),
        "code_hash": code_hash(kernels or []),
    }  # fmt: skip


def driver_version() -> str:
    """The NVIDIA driver's version, or why it is not known."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown ({type(error).__name__} from nvidia-smi)"
    return found[0] if found else "unknown (nvidia-smi printed nothing)"


def command_line(argv: list[str]) -> str:
    """The command that a reader repeats: without the places of this machine."""
    shown, skip = [f"python scripts/{Path(argv[0]).name}"], False
    for word in argv[1:]:
        if not skip and word not in ("--out", "--fresh") and not word.startswith("--out="):
            shown.append(word)
        skip = word == "--out"
    return " ".join(shown)
