"""Reads of a block table that stay inside the table, and yet are wrong: told at the access.

A program's own sequences are those whose lengths it has read. It may read the rows of those alone, and of a
row the entries that its length asks for. The table and the lengths are known by name and shape, as for the
page map (scripts/runner/tables.py); the page size is the kernel's PAGE_SIZE.
"""

import numpy as np

from scripts.runner.explain import reader_line
from scripts.runner.faults import RowOverrun
from scripts.trace_record import View


class TableGuard:
    """Watches the loads of one launch."""

    def __init__(self, memory, kernel: str, table: View, lengths: View, page_size: int | None) -> None:
        self.memory, self.kernel, self.table, self.lengths = memory, kernel, table, lengths
        tokens = np.array(lengths.tensor.tolist(), np.int64)
        self.tokens, self.entries = tokens, None if page_size is None else -(-tokens // page_size)
        self.columns = table.shape[1]
        self.program = None
        self._begin()

    def _begin(self) -> None:
        if self.program != self.memory.program():
            self.program = self.memory.program()
            self.own: set[int] = set()
            self.read: dict[int, int] = {}  # page id -> the element of the table that it was read from last

    def saw_lengths(self, elements: np.ndarray, _values: np.ndarray) -> None:
        """The program's own sequences."""
        self._begin()
        self.own.update(elements.tolist())

    def saw_entries(self, elements: np.ndarray, values: np.ndarray) -> None:
        """Raises RowOverrun."""
        self._begin()
        rows, columns = np.divmod(elements, self.columns)
        if self.own:
            foreign = ~np.isin(rows, list(self.own))
            if foreign.any():
                raise self._fault("other_row", int(elements[foreign][0]))
        if self.entries is not None:
            past = columns >= self.entries[rows]
            if past.any():
                raise self._fault("past_entries", int(elements[past][0]))
        self.read.update(zip(values.tolist(), elements.tolist(), strict=True))

    def _fault(self, code: str, element: int) -> RowOverrun:
        row, column = divmod(element, self.columns)
        own = sorted(self.own)
        values = {"own": own[0] if len(own) == 1 else own, "row": row, "columns": self.columns}
        if code == "past_entries":
            values |= {"length": int(self.tokens[row]), "entries": int(self.entries[row])}
        return RowOverrun(
            code, op="load", program=self.program, line=reader_line(self.memory), kernel=self.kernel,
            tensor=self.table.name, shape=list(self.table.shape), index=[row, column], element=element,
            **values,
        )  # fmt: skip

    def because(self, page: int, pages: int) -> dict | None:
        """Where a page id was read, if the program read it from the table."""
        if self.program != self.memory.program() or page not in self.read:
            return None
        entry = list(divmod(self.read[page], self.columns))
        return {"code": "page", "page": page, "pages": pages, "table": self.table.name, "entry": entry}


def guard_of(memory, kernel: str, views: list[View], constants: dict) -> TableGuard | None:
    """The guard of a launch; None where it has no table, or several."""
    whole = [view for view in views if "int" in str(view.tensor.dtype) and view.tensor.is_contiguous()]
    tables = [view for view in whole if "table" in view.name and len(view.shape) == 2]
    lengths = [view for view in whole if "len" in view.name and len(view.shape) == 1]
    if len(tables) != 1 or len(lengths) != 1 or tables[0].shape[0] != lengths[0].shape[0]:
        return None
    sizes = [value for name, value in constants.items() if name.upper() == "PAGE_SIZE"]
    return TableGuard(memory, kernel, tables[0], lengths[0], sizes[0] if sizes else None)
