"""Python and tl that the interpreter runs and a compiler refuses."""

from tests.runner.refusals.case import Case

CASES = {
    "dot_of_8": Case(
        "small_dot",
        """
        j = tl.arange(0, 8)
        a = tl.load(x + i[:, None] * 8 + j[None, :])
        tl.store(o + i[:, None] * N + i[None, :], tl.dot(a, tl.trans(a), input_precision="ieee"))  # here
        """,
        """
        a = tl.load(x + i[:, None] * N + i[None, :])
        tl.store(o + i[:, None] * N + i[None, :], tl.dot(a, tl.trans(a), input_precision="ieee"))
        """,
    ),
    "list_comprehension": Case(
        "refused",
        """
        rows = [tl.load(x + k) for k in range(4)]  # here
        tl.store(o, rows[0])
        """,
        """
        rows = [tl.load(x + k) for k in (0, 1, 2, 3)]
        tl.store(o, rows[0])
        """,
    ),
    "try": Case(
        "unsupported_python",
        """
        try:  # here
            v = tl.load(x + i)
        finally:
            tl.store(o + i, v)
        """,
        """
        tl.store(o + i, tl.load(x + i))
        """,
    ),
    "lambda": Case(
        "unsupported_python",
        """
        double = lambda t: t * 2  # here
        tl.store(o + i, double(tl.load(x + i)))
        """,
        """
        tl.store(o + i, double(tl.load(x + i)))
        """,
        before="@triton.jit\ndef double(t):\n    return t * 2\n",
    ),
    "dict": Case(
        "unsupported_python",
        """
        tiles = {"a": tl.load(x + i)}  # here
        tl.store(o + i, tiles["a"])
        """,
        """
        tiles = (tl.load(x + i), i)
        tl.store(o + i, tiles[0])
        """,
    ),
    "f_string": Case(
        "refused",
        """
        name = f"{tl.load(x)}"  # here
        tl.store(o + i, 1.0 * len(name))
        """,
        """
        tl.static_assert(N == 16, f"N is {N}")
        tl.store(o + i, 1.0)
        """,
    ),
    "chained_comparison": Case(
        "refused",
        """
        inside = 2 <= i < n  # here
        tl.store(o + i, 1.0, mask=inside)
        """,
        """
        inside = (i >= 2) & (i < n)
        tl.store(o + i, 1.0, mask=inside)
        """,
    ),
    "plain_global": Case(
        "plain_global",
        """
        tl.store(o + i, tl.load(x + i) * SCALE)  # here
        """,
        """
        tl.store(o + i, tl.load(x + i) * SCALE_CONSTEXPR)
        """,
        before="SCALE = 2.0\nSCALE_CONSTEXPR = tl.constexpr(2.0)\n",
    ),
    "plain_function": Case(
        "plain_function",
        """
        tl.store(o + i, double(tl.load(x + i)))  # here
        """,
        """
        tl.store(o + i, tl.load(x + i) * 2)
        """,
        before="def double(t):\n    return t * 2\n",
    ),
    "interpreters_own_global": Case(
        "refused",
        """
        tl.store(o + i, tl.load(x + i) * math.pi)  # here
        """,
        """
        tl.store(o + i, tl.load(x + i) * 3.141592653589793)
        """,
    ),
    "numpy_inside": Case(
        "plain_function",
        """
        tl.store(o + i, tl.load(x + i) * np.sqrt(N))  # here
        """,
        """
        tl.store(o + i, tl.load(x + i) * tl.sqrt(N * 1.0))
        """,
        before="import numpy as np\n",
    ),
    "walrus": Case(
        "unsupported_python",
        """
        tl.store(o + i, (v := tl.load(x + i)) * 2)  # here
        """,
        """
        v = tl.load(x + i)
        tl.store(o + i, v * 2)
        """,
    ),
    "import_inside": Case(
        "unsupported_python",
        """
        import math  # here
        tl.store(o + i, tl.load(x + i))
        """,
        """
        tl.store(o + i, tl.load(x + i))
        """,
    ),
    "del": Case(
        "unsupported_python",
        """
        v = tl.load(x + i)
        del i  # here
        """,
        """
        v = tl.load(x + i)
        tl.store(o + i, v)
        """,
    ),
    "raise": Case(
        "unsupported_python",
        """
        if n > 9:
            raise ValueError("n")  # here
        tl.store(o + i, 1.0)
        """,
        """
        tl.device_assert(n <= 9, "n")
        tl.store(o + i, 1.0)
        """,
    ),
    "default_of_keyword": Case(
        "refused",
        """
        tl.store(o + i, shifted(tl.load(x + i), by=1.0))
        """,
        """
        tl.store(o + i, tl.load(x + i) + 1.0)
        """,
        before="@triton.jit\ndef shifted(t, *, by):\n    return t + by  # here\n",
    ),
}
