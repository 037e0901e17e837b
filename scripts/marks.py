"""How lines of a source file are named: `# region NAME`, `#: name`; and what is raised where a name is wrong.

A library for scripts/listing.py, and for what runs without a lexer.
"""

import re

REGION = re.compile(r"(?:#|//)\s*(region|endregion)\b\s*(.*)")  # of Python, or of C++
MARK = re.compile(r"\s*(?:#|//):\s*(.*)$")
NAME = re.compile(r"[A-Za-z_][\w-]*")


class PageError(ValueError):
    """A page names something that does not exist, or something that it names cannot be read."""
