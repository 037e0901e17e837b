"""The l2_paged_decode lesson: which pages, slots, heads and rows its programs touch."""

from kernels import naive_paged_decode, paged_decode
from kernels.checks import check_lesson_inputs
from scripts.trace_examples import PAGE_SIZE, coordinates, launch_grid, num_pages, page_slots, paged_example
from scripts.tracer import trace

# Streaming multiprocessors of the cards on which the launch is drawn.
NUM_SMS = {"NVIDIA H200": 132, "NVIDIA GeForce RTX 5090": 170}


def record() -> dict:
    """The example of the page loop, seen by the program of KV head 3; both kernels' reads; the launch."""
    ctx, table, program = 37, [9, 3, 7, -1, -1], (0, 3, 0)
    arguments = paged_example(ctx, 32, 8, table)
    with trace() as t:
        paged_decode(*arguments)
    inputs = check_lesson_inputs(*arguments, "NHD")
    block_table = {
        "ctx": ctx, "page_size": PAGE_SIZE, "table": table, "num_pages": num_pages(table),
        "table_reads": coordinates(t.reads("block_table_ptr"), program)[1],
        "k_slots": page_slots(t.reads("k_ptr"), program), "v_slots": page_slots(t.reads("v_ptr"), program),
    }  # fmt: skip
    group_rows = {
        "num_qo_heads": 32, "num_kv_heads": 8, "kv_head": program[1], "block_g": inputs.block_g,
        "q_heads_read": coordinates(t.reads("q_ptr"), program)[1],
        "kv_heads_read": coordinates(t.reads("k_ptr") + t.reads("v_ptr"), program)[2],
        "o_heads_written": coordinates(t.writes("o_ptr"), program)[1],
        "lse_heads_written": coordinates(t.writes("lse_ptr"), program)[1],
    }  # fmt: skip
    return {
        "block_table": block_table,
        "group_rows": group_rows,
        "page_map": {"num_qo_heads": 8, "num_kv_heads": 2, **page_map(ctx, table[:3])},
        "launch": {"batch_size": 1, "ctx": 32768, "grid": launch_grid(), "num_sms": NUM_SMS},
    }


def page_map(ctx: int, table: list[int]) -> dict:
    """For both L2 kernels: each program's KV head and the physical pages of K and V that it read."""
    record = {"ctx": ctx, "table": table}
    for name, decode in (("naive", naive_paged_decode), ("packed", paged_decode)):
        with trace() as t:
            decode(*paged_example(ctx, 8, 2, table))
        grid = t.launches[0].grid
        programs = []
        for head in range(grid[1]):
            program = (0, head, 0)
            (kv_head,) = coordinates(t.reads("k_ptr") + t.reads("v_ptr"), program)[2]
            pages = {x: list(page_slots(t.reads(f"{x}_ptr"), program)) for x in ("k", "v")}
            programs.append({"kv_head": kv_head, **pages})
        record[name] = {"grid": grid[:2], "programs": programs}
    return record
