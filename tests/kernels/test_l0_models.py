"""The tables of published models and of kinds of attention say what `CacheSpec` says."""

import re

import pytest
import torch

from kernels.l0_mla import latent_spec
from kernels.l0_shapes import CacheSpec, grouped_spec
from kernels.l0_variants import grouped_latent_spec, tensor_product_spec, tied_spec
from scripts.bake_l0 import ELEMENT_BYTES, MODELS, VARIANTS, elements, entries_of, formula_of, kind_of, load

SPECS = {"grouped": grouped_spec, "latent": latent_spec}
TABLE = load(MODELS)
KINDS = load(VARIANTS)
HAN = re.compile(r"[\u4e00-\u9fff]")
FIELDS = {"title", "family", "num_layers", "sizes", "repo", "commit", "path", "lines"}
OF_KIND = {
    "mha": grouped_spec(32, 32, 128), "gqa": grouped_spec(32, 8, 128), "mqa": grouped_spec(32, 1, 128),
    "mfa": grouped_spec(32, 1, 256), "mla": latent_spec(32, 512, 64, 128, 128),
    "gla": grouped_latent_spec(32, 2, 256, 64, 128, 128), "gta": tied_spec(8, 128, 64),
    "tpa": tensor_product_spec(32, 128, 2, 2),
}  # fmt: skip


def spec_of(model: dict) -> CacheSpec:
    return SPECS[model["family"]](**model["sizes"], dtype=torch.bfloat16)


def shapes_of(spec: CacheSpec) -> dict[str, tuple[int, int]]:
    return {name: (entry.num_heads, entry.width) for name, entry in spec.entries.items()}


@pytest.mark.parametrize("name", TABLE)
def test_a_models_bytes_are_those_of_its_spec(name):
    model = TABLE[name]
    spec = spec_of(model)
    assert shapes_of(spec) == entries_of(model)
    assert spec.bytes_per_token == ELEMENT_BYTES * elements(entries_of(model))
    assert spec.elements_per_token == eval(formula_of(model).replace("×", "*"))
    assert kind_of(model) == model.get("kind", spec.name)


@pytest.mark.parametrize("name", TABLE)
def test_a_model_says_where_it_was_read(name):
    model = TABLE[name]
    assert set(model) - {"kind", "note_zh", "note_en"} == FIELDS
    assert ("note_zh" in model) == ("note_en" in model)
    assert re.fullmatch(r"[\w-]+/[\w.-]+", model["repo"]) and re.fullmatch(r"[0-9a-f]{40}", model["commit"])
    first, last = model["lines"]
    assert 1 <= first <= last


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_stores_what_its_spec_says(name):
    kind = KINDS[name]
    entries = {key: tuple(shape) for key, shape in kind["entries"].items()}
    if name in OF_KIND:
        assert entries == shapes_of(OF_KIND[name])
        assert elements(entries) == OF_KIND[name].elements_per_token
    assert HAN.search(kind["read_zh"]) and not HAN.search(kind["read_en"])


def test_the_kinds_without_a_spec():
    """Said in words alone: V made of K, and an index beside the latent."""
    assert set(KINDS) - set(OF_KIND) == {"mfa_kr", "dsa"}


@pytest.mark.parametrize("name", KINDS)
def test_a_formula_gives_its_number(name):
    """The formula, with the sizes beside it put in."""
    kind = KINDS[name]
    sizes = {key: int(value) for key, value in (pair.split() for pair in kind["sizes"].split(", "))}
    assert eval(kind["formula"].replace("·", "*"), {}, sizes) == elements(kind["entries"])
