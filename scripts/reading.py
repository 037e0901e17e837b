"""The reading block: `/// reading | ...` lays a listing beside the prose that reads it."""

from xml.etree import ElementTree

from markdown import Markdown
from pymdownx.blocks import BlocksExtension
from pymdownx.blocks.block import Block


class Reading(Block):
    """Two boxes; the listing comes first in the document, so that on a phone it stands above its prose."""

    NAME = "reading"
    ARGUMENT = True

    def on_create(self, parent: ElementTree.Element) -> ElementTree.Element:
        block = ElementTree.SubElement(parent, "div", {"class": "reading"})
        ElementTree.SubElement(block, "div", {"class": "reading-code"}).text = self.argument
        self.prose = ElementTree.SubElement(block, "div", {"class": "reading-prose"})
        return block

    def on_add(self, block: ElementTree.Element) -> ElementTree.Element:
        return self.prose


class ReadingExtension(BlocksExtension):
    """Registers the block with Python-Markdown."""

    def extendMarkdownBlocks(self, md: Markdown, block_mgr: object) -> None:  # noqa: N802 (their name)
        block_mgr.register(Reading, self.getConfigs())
