"""The explorers: the still figure's function draws other numbers, and the numbers are right."""

import json
import math
from itertools import chain

from scripts.explorers import fields
from scripts.generated import ROOT
from scripts.memory_policies import Request
from tests.helpers.figures import assert_sound
from tests.runner.explored import GPUS, LANGS, PROGRAM, drawn, random_cases, random_results, with_torch

GENERATED = ROOT / "snippets/generated"


def of(name: str) -> list[tuple[dict, dict]]:
    """(values, data) of an explorer's random cases, all of which fit."""
    found = [(answer, data) for one, answer, data in random_results() if one == name]
    assert len(found) == 14 and not any(answer["error"] for answer, _ in found)
    return [(answer["values"], data) for answer, data in found]


def test_every_explorer_has_its_parts():
    assert fields.names() == ["merge", "pool", "ranges", "sms", "waste"]
    for name in fields.names():
        assert (ROOT / f"scripts/explorers/{name}.py").is_file()
        pages = [
            page.parts[-3]
            for page in ROOT.glob("docs/*/lessons/*.md")
            if f"{{{{ explore:{name} }}}}" in page.read_text()
        ]
        assert sorted(pages) == ["en", "zh"]
        for field in fields.load(name)["fields"]:
            assert field["zh"] and field["en"] and (field["zh"] != field["en"] or field["name"] == "gpu")


def test_the_defaults_give_the_still_figure():
    """Byte for byte but for the ids, in the page as with torch."""
    asked = [(name, {}, lang) for name in fields.names() for lang in LANGS]
    here = drawn(asked)
    for (name, _, lang), (answer, _) in zip(asked, here, strict=True):
        still = (GENERATED / f"{fields.load(name)['figure']}.{lang}.svg").read_text(encoding="utf-8")
        assert answer["error"] is None
        assert answer["svg"] == still.replace("figure-", "explorer-"), name
        assert f">{answer['text']}</desc>" in still
    assert [data for _, data in here] == [
        data for _, data in with_torch(PROGRAM.format(asked=json.dumps(asked)))
    ]


def test_what_is_drawn_is_sound_and_the_same_with_torch():
    for _, answer, _ in random_results():
        assert_sound(answer["svg"], least=25)
    real = with_torch(PROGRAM.format(asked=json.dumps(random_cases())))
    for (answer, data), (_, _, mine) in zip(real, random_results(), strict=True):
        assert answer["error"] is None and data == mine


def test_ranges_read_every_token_once():
    for values, data in of("ranges"):
        size = values["page_size"]
        for ctx, row in zip(values["seq_lens"], data["page_ranges"], strict=True):
            splits = [split["pages"] for split in row["splits"]]
            assert len(splits) == values["num_splits"]
            assert list(chain(*splits)) == [page for page in range(ctx) if page * size < ctx]
            full = [len(pages) for pages in splits if pages]
            assert len(set(full[:-1])) <= 1 and (not full or full[-1] <= full[0])
            for split in row["splits"]:
                assert split["tokens"] == sum(t // size in split["pages"] for t in range(ctx))


def test_ranges_are_what_the_split_kernel_reads():
    """split_range alone gives the page what a trace of the whole kernel found."""
    cases = [(16, 37, 4), (16, 0, 2), (32, 200, 3), (16, 100, 8), (64, 65, 1)]
    found = with_torch(f"""
from scripts.traces.l3_split_kv_decode import page_ranges, split_ranges
result = [[page_ranges(ctx, n, size), split_ranges([ctx], n, size)[0]] for size, ctx, n in {cases}]
""")
    for traced, quick in found:
        assert traced == quick


def test_merges_are_the_softmax_of_all():
    for values, data in of("merge"):
        scores, told, cut = values["scores"], values["values"], values["cut"]
        weights = [math.exp(score - max(scores)) for score in scores]
        o = math.fsum(w * v for w, v in zip(weights, told, strict=True)) / math.fsum(weights)
        lse = max(scores) + math.log(math.fsum(weights))
        merged = data["merge_example"]["merged"]
        assert math.isclose(merged["o"], o, abs_tol=2e-3) and math.isclose(merged["lse"], lse, abs_tol=2e-4)
        parts = data["merge_example"]["splits"]
        assert [part["scores"] for part in parts] == [scores[:cut], scores[cut:]]
        for part in parts:
            if not part["scores"]:
                assert (part["o"], part["lse"]) == (0, "-inf")


def test_pools_are_those_of_a_cache_that_counts_by_hand():
    for values, data in of("pool"):
        size, found = values["page_size"], data["pool"]
        free, rows, lens, refused, done = list(range(values["num_pages"])), [], [], None, 0

        def grow(changes: list[tuple[int, int]], free=free, rows=rows, lens=lens, size=size) -> dict | None:
            needed = sum(math.ceil((lens[i] + n) / size) - len(rows[i]) for i, n in changes)
            if needed > len(free):
                return {"needed": needed, "free": len(free)}
            for i, n in changes:
                lens[i] += n
                while len(rows[i]) * size < lens[i]:
                    rows[i].append(free.pop(0))
            return None

        for prompt in values["prompts"]:
            rows.append([])
            lens.append(0)
            if refused := grow([(len(rows) - 1, prompt)]):
                rows.pop()
                lens.pop()
                break
        while not refused and done < values["steps"]:
            if not (refused := grow([(i, 1) for i in range(len(rows))])):
                done += 1
        assert (found["refused"], found["done"], found["lens"]) == (refused, done, lens)
        assert [[page for page in row if page >= 0] for row in found["table"]] == rows
        assert found["num_free"] == len(free)


def test_sms_get_their_programs_one_after_the_other():
    for values, data in of("sms"):
        found, num_sms = data["sm_grid"], GPUS[values["gpu"]]
        programs = math.prod(found["grid"])
        shape = [values["batch_size"], values["num_kv_heads"]]
        assert found["unsplit_grid"] == shape and found["grid"] == [*shape, found["num_splits"]]
        assert found["num_sms"] == num_sms and found["num_splits"] == (
            values["num_splits"] or found["num_splits"]
        )
        counts = [0] * num_sms
        for program in range(programs):
            counts[program % num_sms] += 1
        answer = next(a for name, a, d in random_results() if name == "sms" and d == data)
        cells = [cell for cell in answer["svg"].split("<text ") if 'text-anchor="middle">' in cell]
        shown = [int(cell.split(">")[1].split("<")[0]) for cell in cells]
        busy = sorted(filter(None, counts))
        assert sorted(shown[-len(busy) :]) == busy
        # Waves and tail, from the counts: the busiest SMs have a program of the last wave.
        full, last = min(counts), counts.count(max(counts))
        if len(set(counts)) == 1:
            assert f"{programs} = {full} × {num_sms}" in answer["text"]
        else:
            tail = f"{programs} = {full} × {num_sms} + {last}"
            assert (tail in answer["text"]) == (full > 0) and f"{num_sms - last} " in answer["text"]


def test_waste_is_what_a_count_by_hand_finds():
    for values, data in of("waste"):
        found, size, seats = data["waste"], values["page_size"], values["seats"]
        waiting = [Request(*request) for request in values["requests"]][::-1]
        running: list[list[int]] = []  # [tokens, to come]
        used, paged = [], []
        while True:
            while waiting and len(running) < seats:
                request = waiting.pop()
                running.append([request.prompt, request.answer])
            if len(running) < seats:
                break
            running = [[tokens + 1, left - 1] for tokens, left in running]
            used.append(sum(tokens for tokens, _ in running))
            paged.append(sum(math.ceil(tokens / size) * size for tokens, _ in running))
            running = [one for one in running if one[1]]
        told = found["policies"]
        assert [told["page"][key] for key in ("steps", "used", "reserved")] == [
            len(used),
            sum(used),
            sum(paged),
        ]
        assert told["reserve"]["reserved"] == seats * values["max_len"] * len(used)
        assert sum(used) < told["grow"]["reserved"] <= told["grow"]["extent"] * len(used)
        assert found["used"] == [used[step] for step in found["sampled_steps"]]
