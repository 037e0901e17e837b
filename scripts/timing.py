"""How everything here is timed on a GPU.

Latency: the launches of one thing, over page sets that are too large together for the L2 cache, are captured
back to back in one CUDA graph, so that neither Python nor a warm cache is in the figure. The graphs of all
things under comparison are replayed in turns, round after round: a drifting clock hits all of them alike.
Eager time: one call as users make it, on an idle GPU, from the call to the end of its work.
"""

import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice, pairwise

import torch

GRAPH_US = 3000.0  # least length of a captured graph; its own start-up of a few us vanishes in it
QUICK_US = 300.0  # the same, for a quick look
REPLAYS = 3  # timed replays of each graph in a round, after one that is not timed

Call = Callable[[], object]


def quantiles(samples: Sequence[float]) -> dict[str, float]:
    """p20, p50 and p80 of the samples, linearly interpolated, rounded to 0.01."""
    ordered = sorted(samples)
    result = {}
    for percent in (20, 50, 80):
        position = (len(ordered) - 1) * percent / 100
        low = int(position)
        high = min(low + 1, len(ordered) - 1)
        value = ordered[low] + (ordered[high] - ordered[low]) * (position - low)
        result[f"p{percent}"] = round(value, 2)
    return result


class LaunchGraph:
    """All `calls`, one after the other and over again, as one CUDA graph of at least `graph_us`.

    It keeps the calls: a graph knows the addresses of their buffers, and does not keep them alive.
    """

    def __init__(self, calls: Sequence[Call], graph_us: float = GRAPH_US) -> None:
        self.calls = calls
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # compile, and allocate, outside the capture
            for call in calls:
                call()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()

        self.graph, self.num_launches = _capture(calls, 1), len(calls)
        self.graph.replay()
        one_pass_us = min(self.sample(2)) * len(calls)
        repeats = int(-(-graph_us // max(one_pass_us, 1.0)))
        if repeats > 1:
            self.graph, self.num_launches = _capture(calls, repeats), repeats * len(calls)

    def sample(self, replays: int = REPLAYS) -> list[float]:
        """us a launch, one figure a replay; the GPU is kept busy, so that no figure holds a host delay."""
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(replays + 1)]
        self.graph.replay()
        marks[0].record()
        for mark in marks[1:]:
            self.graph.replay()
            mark.record()
        torch.cuda.synchronize()
        return [a.elapsed_time(b) * 1e3 / self.num_launches for a, b in pairwise(marks)]


def _capture(calls: Sequence[Call], repeats: int) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            for call in calls:
                call()
    return graph


def interleaved_latency(graphs: dict[str, LaunchGraph], rounds: int) -> dict[str, dict[str, float]]:
    """us a launch, {"p20", "p50", "p80"}, for every graph; each round replays every graph."""
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, graph in graphs.items():
            samples[name] += graph.sample()
    return {name: quantiles(values) for name, values in samples.items()}


def graph_latency(calls: Sequence[Call], rounds: int = 5) -> dict[str, float]:
    """us a launch of one thing, timed alone: {"p20", "p50", "p80"}."""
    return interleaved_latency({"": LaunchGraph(calls)}, rounds)[""]


def quick_latency(calls: Sequence[Call]) -> float:
    """us a launch at a quick look: the least of a few replays of a short graph. For choosing only."""
    return min(LaunchGraph(calls, QUICK_US).sample())


def eager_latency(calls: Sequence[Call], repeats: int = 20) -> tuple[dict[str, float], dict[str, float]]:
    """(total, host): us of one call until its work is done, and until it returns to Python."""
    for call in calls:
        call()
    total, host = [], []
    for call in islice(cycle(calls), repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        returned = time.perf_counter()
        torch.cuda.synchronize()
        total.append((time.perf_counter() - start) * 1e6)
        host.append((returned - start) * 1e6)
    return quantiles(total), quantiles(host)
