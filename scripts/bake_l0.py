"""The tables of L0: what published models store of a token, and what each kind of attention stores.

Sizes are those of snippets/models.toml and snippets/kv_variants.toml; the numbers are computed here, and
tests/kernels/test_l0_models.py holds them to `CacheSpec`.
"""

import html
import tomllib

from scripts.bake_text import WORDS, table
from scripts.records import ROOT

LESSON = "l0_shapes"
MODELS = ROOT / "snippets/models.toml"
VARIANTS = ROOT / "snippets/kv_variants.toml"
PRODUCTION = ROOT / "snippets/production.toml"
ELEMENT_BYTES = 2  # fp16 and bf16
LONG = 32768  # tokens of the sequence in the last column


def load(path) -> dict[str, dict]:
    """The tables of a TOML file, by name, in the file's order."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def entries_of(model: dict) -> dict[str, tuple[int, int]]:
    """What a token stores in a layer: name -> (num_heads, width)."""
    sizes = model["sizes"]
    if model["family"] == "latent":
        return {"latent": (1, sizes["d_c"] + sizes["d_rope"])}
    heads = sizes["num_kv_heads"], sizes["head_dim"]
    return {"k": heads, "v": heads}


def elements(entries: dict) -> int:
    """Elements a token and layer."""
    return sum(num_heads * width for num_heads, width in entries.values())


def kind_of(model: dict) -> str:
    """MHA, GQA, MQA, MLA, or what the authors call it."""
    sizes = model["sizes"]
    if model["family"] == "latent":
        return "MLA"
    named = {sizes["num_qo_heads"]: "MHA", 1: "MQA"}.get(sizes["num_kv_heads"], "GQA")
    return model.get("kind", named)


def formula_of(model: dict) -> str:
    """The elements of a token and layer, as arithmetic: 2 × 8 × 128."""
    sizes = model["sizes"]
    if model["family"] == "latent":
        return f"{sizes['d_c']} + {sizes['d_rope']}"
    return f"2 × {sizes['num_kv_heads']} × {sizes['head_dim']}"


def models(_: list[dict], lang: str) -> str:
    """A line a model: elements and bytes a token and layer, bytes of all layers, GB of a long sequence."""
    words, rows, notes = WORDS[lang], [], []
    for model in load(MODELS).values():
        title = _unbroken(model["title"])
        if note := model.get(f"note_{lang}"):
            notes.append(f"{model['title']}{words['l0_colon']}{note}")
            title += f"<sup>{len(notes)}</sup>"
        layer = ELEMENT_BYTES * elements(entries_of(model))
        token = layer * model["num_layers"]
        rows.append([
            title, kind_of(model), _unbroken(formula_of(model)), f"{layer:,}", str(model["num_layers"]),
            f"{token:,}", f"{token * LONG / 1e9:.2f}", str(model["sizes"]["num_qo_heads"]),
            _link(source_url(model), words["l0_config"]),
        ])  # fmt: skip
    keys = ("model", "kind", "elements", "bytes", "layers", "all_layers", "long")
    head = [*(words[f"l0_{key}"] for key in keys), "Hq", words["l0_source"]]
    small = "<br>".join(f"<sup>{i}</sup> {html.escape(note)}" for i, note in enumerate(notes, 1))
    return f"{table(head, rows, texts=2)}\n<p><small>{small}</small></p>"


def variants(_: list[dict], lang: str) -> str:
    """A line a kind of attention: elements a token and layer, what is stored, what a read does, source."""
    words, papers, rows = WORDS[lang], load(PRODUCTION), []
    for kind in load(VARIANTS).values():
        system, _, name = kind["source"].partition(".")
        link = _link(source_url(papers[system][name]), papers[system][name]["title"])
        formula = f"{_unbroken(kind['formula'])}<br><small>{html.escape(kind['sizes'])}</small>"
        told = [_wrapped(html.escape(kind[f"{key}_{lang}"])) for key in ("stored", "read")]
        number = f"{elements(kind['entries']):,}"
        rows.append([_unbroken(kind["title"]), formula, number, *told, _wrapped(link)])
    head = [words[f"l0_{key}"] for key in ("kind", "formula", "number", "stored", "read", "source")]
    return table(head, rows, texts=6)


def source_url(entry: dict) -> str:
    """The address of a paper, or of lines of code at a commit."""
    if "url" in entry:
        return entry["url"]
    first, last = entry["lines"]
    return f"https://github.com/{entry['repo']}/blob/{entry['commit']}/{entry['path']}#L{first}-L{last}"


def _link(url: str, text: str) -> str:
    return f'<a href="{html.escape(url)}">{html.escape(text)}</a>'


def _unbroken(text: str) -> str:
    """On one line: a phone would break a name between any two letters."""
    return f'<span style="white-space:nowrap">{html.escape(text)}</span>'


def _wrapped(text: str) -> str:
    """Prose, wide enough for a few words a line."""
    return f'<span style="display:block;min-width:11rem">{text}</span>'


L0_TABLES = {f"{LESSON}/models": models, f"{LESSON}/variants": variants}
