"""Loops, branches and conditions that the interpreter runs and a compiler refuses."""

from tests.runner.refusals.case import Case

CASES = {
    "carried_dtype": Case(
        "carried_type",
        """
        total = 0
        for k in range(n):  # here
            total += tl.load(x + k)
        tl.store(o, total)
        """,
        """
        total = 0.0
        for k in range(n):
            total += tl.load(x + k)
        tl.store(o, total)
        """,
    ),
    "carried_shape": Case(
        "carried_type",
        """
        acc = 0.0
        for k in range(n):  # here
            acc += tl.load(x + k + i)
        tl.store(o + i, acc)
        """,
        """
        acc = tl.zeros([N], tl.float32)
        for k in range(n):
            acc += tl.load(x + k + i)
        tl.store(o + i, acc)
        """,
    ),
    "carried_in_while": Case(
        "carried_type",
        """
        k = 0
        acc = tl.zeros([N], tl.float16)
        while k < n:  # here
            acc += tl.load(x + k + i)
            k += 1
        tl.store(o + i, acc)
        """,
        """
        k = 0
        acc = tl.zeros([N], tl.float32)
        while k < n:
            acc += tl.load(x + k + i)
            k += 1
        tl.store(o + i, acc)
        """,
    ),
    "return_in_loop": Case(
        "return_in_loop",
        """
        for k in range(n):
            if k > 2:  # here
                return
            tl.store(o + k, 1.0)
        """,
        """
        if n > 9:
            return
        for k in range(n):
            tl.store(o + k, 1.0, mask=k <= 2)
        """,
    ),
    "break": Case(
        "break_or_continue",
        """
        for k in range(n):
            tl.store(o + k, 1.0)
            if k > 2:
                break  # here
        """,
        """
        k = 0
        while (k < n) & (k <= 2):
            tl.store(o + k, 1.0)
            k += 1
        """,
    ),
    "continue": Case(
        "break_or_continue",
        """
        for k in range(n):
            if k == 2:
                continue  # here
            tl.store(o + k, 1.0)
        """,
        """
        for k in range(n):
            if k != 2:
                tl.store(o + k, 1.0)
        """,
    ),
    "static_range_of_a_value": Case(
        "refused",
        """
        for k in tl.static_range(n):  # here
            tl.store(o + k, 1.0)
        """,
        """
        for k in tl.static_range(N):
            tl.store(o + k, 1.0)
        """,
    ),
    "loop_over_a_list": Case(
        "refused",
        """
        for k in (1, 2, 3):  # here
            tl.store(o + k, 1.0)
        """,
        """
        for k in range(1, 4):
            tl.store(o + k, 1.0)
        """,
    ),
    "else_of_a_loop": Case(
        "refused",
        """
        for k in range(n):  # here
            tl.store(o + k, 1.0)
        else:
            tl.store(o, 2.0)
        """,
        """
        for k in range(n):
            tl.store(o + k, 1.0)
        tl.store(o, 2.0)
        """,
    ),
    "constexpr_in_a_loop": Case(
        "refused",
        """
        for k in range(n):  # here
            N = N * 1
            tl.store(o + k, 1.0)
        """,
        """
        for k in range(n):
            tl.store(o + k, 1.0)
        """,
    ),
    "while_tile": Case(
        "tile_as_condition",
        """
        v = tl.load(x + i) - 1
        while v > 0:  # here
            v -= 1
            n += 1
            if n > 20:
                v = v - 100
        tl.store(o + i, v)
        """,
        """
        v = tl.load(x + i)
        while tl.max(v, 0) > 0:
            v -= 1
        tl.store(o + i, v)
        """,
    ),
    "if_tile": Case(
        "tile_as_condition",
        """
        v = tl.load(x + i)
        if i < n:  # here
            v += 1
        tl.store(o + i, v)
        """,
        """
        v = tl.load(x + i)
        if n > 3:
            v += 1
        tl.store(o + i, tl.where(i < n, v + 1, v))
        """,
    ),
    "choice_by_tile": Case(
        "tile_as_condition",
        """
        v = tl.load(x + i) if i < n else tl.zeros([N], tl.float32)  # here
        tl.store(o + i, v)
        """,
        """
        v = tl.load(x + i) if n > 3 else tl.zeros([N], tl.float32)
        tl.store(o + i, v)
        """,
    ),
    "defined_in_one_branch": Case(
        "refused",
        """
        if n > 3:
            scale = 2.0
        tl.store(o + i, tl.load(x + i) * scale)  # here
        """,
        """
        scale = 1.0
        if n > 3:
            scale = 2.0
        tl.store(o + i, tl.load(x + i) * scale)
        """,
    ),
    "branches_of_two_types": Case(
        "refused",
        """
        if n > 3:  # here
            v = tl.load(x + i)
        else:
            v = i
        tl.store(o + i, v)
        """,
        """
        if n > 3:
            v = tl.load(x + i)
        else:
            v = i.to(tl.float32)
        tl.store(o + i, v)
        """,
    ),
}
