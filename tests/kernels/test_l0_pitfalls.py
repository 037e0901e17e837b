"""Each pitfall of the lesson is an edit of its file that one named test catches, and what it computes."""

import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

from kernels.l0_shapes import attend
from scripts.mutant_files import Mutant, load

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "snippets/mutants/l0_shapes"
CAUGHT_BY = {
    "heads_repeated_whole": "test_l0_shapes.py::test_attend_is_its_definition",
    "heads_transposed": "test_l0_shapes.py::test_heads_are_a_view",
    "keys_not_rotated": "test_l0_shapes.py::test_only_distances_matter",
    "pairs_adjacent": "test_l0_shapes.py::test_rotation_of_one_pair",
    "position_of_the_next": "test_l0_small_model.py::test_every_step_has_the_logits_of_the_full_forward",
    "scale_of_the_latent": "test_l0_mla.py::test_the_scale_is_that_of_the_heads_not_of_the_latent",
}


def mutant(name: str) -> Mutant:
    return load(f"l0_shapes/{name}")


def module_of(name: str) -> types.ModuleType:
    """The mutated file, imported under another name."""
    source = mutant(name).apply((ROOT / mutant(name).file).read_text(encoding="utf-8"))
    module = types.ModuleType(f"mutant_{name}")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(source, mutant(name).file, "exec"), module.__dict__)
    return module


def test_every_mutant_is_tested():
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(CAUGHT_BY)


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_its_page_shows_it_and_names_the_test(name):
    """The page's section has the edit, and the test that catches it."""
    test = CAUGHT_BY[name].partition("::")[2]
    for lang in ("zh", "en"):
        text = (ROOT / f"docs/{lang}/lessons/l0_shapes.md").read_text(encoding="utf-8")
        section = text.partition(f"{{#{mutant(name).section}}}")[2].partition("\n### ")[0]
        assert test in section, f"docs/{lang}/lessons/l0_shapes.md#{mutant(name).section} has no {test}"
        assert f"\n{{{{ pitfall:{name} }}}}\n" in section


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_the_named_test_catches_it(name, tmp_path):
    """The test passes on kernels/ and fails on a copy with the edit."""
    shutil.copytree(ROOT / "kernels", tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in ("tests", "scripts", "snippets"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    path = tmp_path / mutant(name).file
    path.write_text(mutant(name).apply(path.read_text(encoding="utf-8")), encoding="utf-8")
    # By importlib: else pytest would follow the links, and put the folder of the true kernels first.
    options = ["-x", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    test = f"tests/kernels/{CAUGHT_BY[name]}"
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, test], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout[-2000:]


def test_repeated_whole_reads_other_heads():
    """Four query heads, two KV heads whose V is 0 and 1 throughout: o is the KV head that was read."""
    q, k = torch.ones(1, 4, 2), torch.ones(3, 2, 2)
    v = torch.tensor([0.0, 1.0]).view(1, 2, 1).expand(3, 2, 2)
    assert attend(q, k, v, 1.0)[0, :, 0].tolist() == [0, 0, 1, 1]
    assert module_of("heads_repeated_whole").attend(q, k, v, 1.0)[0, :, 0].tolist() == [0, 1, 0, 1]


def test_transposed_heads_mix_elements():
    flat = torch.tensor([0, 2, 1, 3, 2, 0, 2, 3])
    wrong = module_of("heads_transposed").split_heads(flat, 4)
    assert wrong.tolist() == [[0, 2], [2, 0], [1, 2], [3, 3]]


def test_the_scale_of_the_latent_flattens_the_softmax():
    spec = module_of("scale_of_the_latent").latent_spec(128, 512, 64, 128, 128)
    assert 192**-0.5 / spec.sm_scale == pytest.approx(3**0.5)
