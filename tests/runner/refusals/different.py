"""Kernels of which the compiler makes something else than the interpreter, each beside one that is alike."""

from tests.runner.refusals.case import Case

CASES = {
    "not_of_a_tile": Case(
        "tile_logic",
        """
        tl.store(o + i, 1.0, mask=not (i < n))  # here
        """,
        """
        tl.store(o + i, 1.0, mask=~(i < n))
        """,
    ),
    "and_of_tiles": Case(
        "tile_logic",
        """
        tl.store(o + i, 1.0, mask=(i < n) and (i > 1))  # here
        """,
        """
        tl.store(o + i, 1.0, mask=(i < n) & (i > 1))
        """,
    ),
    "or_of_tiles": Case(
        "tile_logic",
        """
        tl.store(o + i, 1.0, mask=(i > n) or (i < 1))  # here
        """,
        """
        tl.store(o + i, 1.0, mask=(i > n) | (i < 1))
        """,
    ),
    "min_of_tiles": Case(
        "tile_logic",
        """
        tl.store(o + i, min(tl.load(x + i), i * 1.0))  # here
        """,
        """
        tl.store(o + i, tl.minimum(tl.load(x + i), i * 1.0))
        """,
    ),
    "max_of_a_tile_and_a_number": Case(
        "tile_logic",
        """
        tl.store(o + i, max(tl.load(x + i), 0.5))  # here
        """,
        """
        tl.store(o + i, max(n, 3) + tl.maximum(tl.load(x + i), 0.5))
        """,
    ),
    "dot_in_tf32": Case(
        "tf32",
        """
        a = tl.load(x + i[:, None] * N + i[None, :])
        tl.store(o + i[:, None] * N + i[None, :], tl.dot(a, a))  # here
        """,
        """
        a = tl.load(x + i[:, None] * N + i[None, :])
        tl.store(o + i[:, None] * N + i[None, :], tl.dot(a, a, input_precision="ieee"))
        """,
    ),
}
