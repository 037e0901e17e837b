"""Checked mode refuses ids and lengths out of range; without it no call waits for the device."""

import pytest
import torch

from kernels import checks, split_kv_decode, split_kv_decode_unnormalized
from tests.helpers.cases import make_case
from tests.helpers.decoders import DECODERS
from tests.helpers.marks import gpu_only

decoders = pytest.mark.parametrize("name", DECODERS)


@pytest.fixture
def checked(monkeypatch):
    """Checked mode: always on in the interpreter, by request on a GPU."""
    monkeypatch.setattr(checks, "CHECKED", True)


@pytest.mark.parametrize("seq_len", [-1, 65, 2**31 - 1])
@decoders
def test_checked_lengths(name, seq_len, checked):
    case = make_case([20, 20])  # a row of the table holds 4 pages of 16
    case.seq_lens[1] = seq_len
    with pytest.raises(ValueError, match=rf"seq_lens\[1\] is {seq_len}; wanted 0 to 64"):
        DECODERS[name](*case.args)


@pytest.mark.parametrize("page_id", [-1, 7, 2**31 - 1, -(2**31)])
@decoders
def test_checked_page_ids(name, page_id, checked):
    case = make_case([20, 20])  # 7 pages
    case.block_table[1, 1] = page_id
    with pytest.raises(ValueError, match=rf"block_table\[1, 1\] is {page_id}; wanted 0 to 6"):
        DECODERS[name](*case.args)


@pytest.mark.parametrize("beyond", [-1, 7, 2**31 - 1])
@decoders
def test_checked_mode_leaves_entries_past_the_end_alone(name, beyond, checked):
    assert not DECODERS[name](*make_case([20, 0], beyond=beyond).args).isnan().any()


@decoders
def test_lengths_up_to_the_capacity(name, checked):
    assert not DECODERS[name](*make_case([32], spare_columns=0, spare_pages=0).args).isnan().any()


@gpu_only
@decoders
def test_no_copy_to_the_host(name, monkeypatch):
    """Any wait for the device raises; the number of splits is chosen here, too."""
    monkeypatch.setattr(checks, "CHECKED", False)
    case = make_case([20, 0])
    calls = [lambda: DECODERS[name](*case.args, return_lse=True)]
    if name == "split":
        calls.append(lambda: split_kv_decode(*case.args))
        calls.append(lambda: split_kv_decode(*case.args, max_seq_len=20))
    if name == "unnormalized":
        calls.append(lambda: split_kv_decode_unnormalized(*case.args))
    for call in calls:
        call()  # compiles
    torch.cuda.set_sync_debug_mode("error")
    try:
        for call in calls:
            call()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@gpu_only
def test_sync_debug_mode_sees_a_copy_to_the_host():
    """The test above can fail."""
    case = make_case([20])
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchroniz"):
            case.seq_lens.tolist()
    finally:
        torch.cuda.set_sync_debug_mode("default")
