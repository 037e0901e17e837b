"""Block tables and sequence lengths, as each launch got them: when the run is over, they may have changed.

with Tables() as tables:
    paged_decode(...)
tables.tokens(launch, num_pages, page_size)
"""

import inspect
from contextlib import ExitStack

import numpy as np
from triton.runtime import interpreter

from scripts.patching import patched

_MOST = 1 << 18  # entries of a table that are kept; a larger one is as good as unknown


class Tables:
    """What the launches inside were told; by_launch: number -> (block table [B, max_pages], lengths [B])."""

    def __init__(self) -> None:
        self.by_launch: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._launched = 0
        self._patches = ExitStack()

    def __enter__(self) -> "Tables":
        run = interpreter.GridExecutor.__call__

        def wrapper(executor, *args: object, **kwargs: object) -> None:
            number, self._launched = self._launched, self._launched + 1
            known = {k: v for k, v in kwargs.items() if k in executor.arg_names}
            found = _table_and_lengths(inspect.getcallargs(executor.fn, *args, **known))
            if found:
                self.by_launch[number] = found
            run(executor, *args, **kwargs)

        self._patches.enter_context(patched(interpreter.GridExecutor, "__call__", wrapper))
        return self

    def __exit__(self, *error: object) -> None:
        self._patches.close()

    def tokens(self, launch: int, num_pages: int, page_size: int) -> np.ndarray | None:
        """Which slots hold a token of a sequence, bool [num_pages, page_size]; None where nothing says so."""
        if launch not in self.by_launch:
            return None
        table, lengths = self.by_launch[launch]
        used = np.zeros((num_pages, page_size), bool)
        for row, length in zip(table, lengths.tolist(), strict=True):
            position = np.arange(min(length, row.size * page_size))
            page = row[position // page_size]
            real = (page >= 0) & (page < num_pages)  # an entry may be as wrong as the reader likes
            used[page[real], position[real] % page_size] = True
        return used


def _table_and_lengths(arguments: dict[str, object]) -> tuple[np.ndarray, np.ndarray] | None:
    """The one table [B, max_pages] and the one list of lengths [B] among the tensors, by name and shape."""
    whole = {
        name: tensor
        for name, tensor in arguments.items()
        if hasattr(tensor, "data_ptr") and "int" in str(tensor.dtype) and tensor.numel() <= _MOST
    }
    tables = [tensor for name, tensor in whole.items() if "table" in name and len(tensor.shape) == 2]
    lengths = [tensor for name, tensor in whole.items() if "len" in name and len(tensor.shape) == 1]
    if len(tables) != 1 or len(lengths) != 1 or tables[0].shape[0] != lengths[0].shape[0]:
        return None
    shape = tuple(tables[0].shape)  # of no rows, tolist() forgets the columns
    return np.array(tables[0].tolist(), np.int64).reshape(shape), np.array(lengths[0].tolist(), np.int64)
