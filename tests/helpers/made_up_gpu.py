"""A GPU for tests of benches: kernels run where the suite runs; card, software and clock are made up."""

from scripts import read_ceiling, records
from tests.helpers.mode import ON_GPU

GPU = {"name": "Test GPU", "slug": "test-gpu", "num_sms": 2, "l2_bytes": 1, "memory_bytes": 2**30}
SOFTWARE = {"driver": "1", "cuda": "1", "torch": "1", "triton": "1", "python": "1"}


class FakeGraph:
    """Runs one of the calls, as the warm-up of a real graph runs all."""

    def __init__(self, calls, graph_us: float = 0) -> None:
        calls[-1]()


def fake_latency(graphs, rounds) -> dict[str, dict]:
    """10 us for the first, 11 for the second, and so on."""
    return {name: {"p20": 9.0, "p50": 10.0 + i, "p80": 21.0} for i, name in enumerate(graphs)}


def make_up(monkeypatch, command: str, *timing, code_hash=records.code_hash) -> None:
    """Records are of `command` on this card; modules of `timing` time graphs by the made-up clock."""

    def provenance(lesson, kernels=None) -> dict:
        return {
            "schema": 1, "kind": "measured", "lesson": lesson, "gpu": GPU, "software": SOFTWARE,
            "date": "2026-01-01", "command": f"python scripts/{command}",
            "code_hash": code_hash(kernels or []),
        }  # fmt: skip

    monkeypatch.setattr(records, "provenance", provenance)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    if not ON_GPU:
        monkeypatch.setattr("torch.cuda.synchronize", lambda: None)
    for module in timing:
        monkeypatch.setattr(module, "LaunchGraph", FakeGraph)
        monkeypatch.setattr(module, "interleaved_latency", fake_latency)
    monkeypatch.setattr(read_ceiling, "PURE_READS", ((1, 16, 1, 1), (2, 2**20, 1, 1)))
    monkeypatch.setattr(read_ceiling, "PAGED_READS", ((2, 32, 1, 1),))
