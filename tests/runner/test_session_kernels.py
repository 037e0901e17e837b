"""What a run tells of its kernels beside their results."""

from tests.runner.session_runs import KERNEL, runs


def test_assertions_of_a_kernel_are_looked_at():
    asserting = KERNEL.replace("    v = tl.load", "    tl.device_assert(i < {n}, 'too far')\n    v = tl.load")
    good, bad = runs(asserting.format(n=32, value="v"), asserting.format(n=31, value="v"))
    assert good["ok"]
    assert bad["error"]["message"] == "tl.device_assert: too far"
    assert bad["error"]["line"] == 13


def test_an_int32_that_wraps_around_is_no_error():
    (report,) = runs(KERNEL.format(value="(i + 2147483647) * 65537"))
    assert report["ok"], report["error"]


def test_what_is_not_here_says_so_by_name():
    half = KERNEL.format(value="v.to(tl.bfloat16).to(tl.float32)")
    lib = KERNEL.replace("import torch", "import torch\nfrom triton.language.extra import libdevice")
    reports = runs(
        half, lib.format(value="libdevice.tanh(v)"), "import torch\ntorch.fft.fft(torch.ones(2))\n"
    )
    assert [r["error"]["unsupported"] for r in reports[:2]] == ["tl.bfloat16", "libdevice.tanh"]
    assert reports[0]["error"]["line"] == 14
    assert reports[2]["error"]["unsupported"].startswith("torch.fft")


def test_autotune_takes_the_first_configuration_and_says_so():
    tuned = (
        KERNEL.replace(
            "@triton.jit\ndef kernel",
            '@triton.autotune([triton.Config({{"N": 16}}), triton.Config({{"N": 8}})], key=[])\n'
            "@triton.jit\ndef kernel",
        )
        .format(value="v + N")
        .replace("(x, o, N=16)", "(x, o)")
    )
    (report,) = runs(tuned)
    assert report["stdout"] == "done 19.0\n"
    assert [(w["code"], w["line"]) for w in report["warnings"]] == [("autotune", 18)]


def test_two_programs_that_store_to_one_element_are_warned_of():
    same = KERNEL.replace("tl.program_id(0) * N + ", "")
    taking_turns = same.replace("tl.store(o_ptr + i", "tl.atomic_add(o_ptr + i, 0.0)\n    tl.store(o_ptr + i")
    taking_turns = taking_turns.replace("torch.empty", "torch.zeros")
    two, turns = runs(same.format(value="v"), taking_turns.format(value="v"))
    (warning,) = two["warnings"]
    assert two["ok"] and (warning["code"], warning["line"]) == ("two_writers", 14)
    assert warning["message"].startswith("Programs (0, 0, 0), (1, 0, 0) store to the same element, o_ptr[0].")
    assert turns["ok"] and turns["warnings"] == []


def test_a_kernels_function_is_not_called_by_the_host():
    message = "Cannot call @triton.jit'd outside of the scope of a kernel"
    reports = runs(
        KERNEL.format(value="v") + "helper(x)\n", KERNEL.format(value="v") + "kernel(x, o, N=16)\n"
    )
    assert [(r["error"]["message"], r["error"]["line"]) for r in reports] == [(message, 19)] * 2


def test_what_both_refuse_is_said_once():
    (report,) = runs(KERNEL.format(value="v").replace("tl.arange(0, N)", "tl.arange(0, 12)"))
    assert report["error"]["message"] == "arange's range must be a power of 2"
    assert report["warnings"] == []
