"""Compiled modules of packages that come from an archive: Python would look for them in it alone."""

import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path


class Extensions:
    """Finds them in a folder that is laid out as the packages are."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        """importlib's protocol."""
        stem = self.folder.joinpath(*name.split("."))
        for suffix in EXTENSION_SUFFIXES:
            file = stem.with_name(stem.name + suffix)
            if file.is_file():
                return spec_from_file_location(name, file)
        return None


def install(folder: str) -> None:
    """Look there first."""
    sys.meta_path.insert(0, Extensions(folder))
