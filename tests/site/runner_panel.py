"""A page's panel with a runner that the test plays itself: what it is asked, and what it answers."""

import base64
import zlib

from playwright.sync_api import Locator, Page, expect

LESSON, PROBLEM = "lessons/l2_paged_decode/", "problems/l2_paged_decode/"
expect.set_options(timeout=20_000)  # the editor is fetched on the first press, and machines may be busy

# What the page imports as its runner: it answers when the test says so.
CLIENT = """
export const getRunner = () => window.played
window.asked = []
const ask = (kind, args, listeners) => new Promise((resolve, reject) => {
  window.asked.push([kind, ...args])
  window.played.now = { resolve, reject, ...listeners }
})
window.played = {
  run: (source, options, listeners) => ask("run", [source, options], listeners),
  check: (lesson, level, source, lang, listeners) => ask("check", [lesson, level, source, lang], listeners),
  stop() { window.played.now.reject(Object.assign(new Error("stopped"), { name: "Stopped" })) },
}
"""
RESULT = {"ok": True, "stdout": "", "ms": 310, "error": None, "warnings": [], "page_map": None, "steps": None}


def link(source: str, level: str = "") -> str:
    """The hash of an address that holds a program, as share.mjs has it."""
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = base64.urlsafe_b64encode(deflate.compress(source.encode()) + deflate.flush())
    return "#code=" + packed.decode().rstrip("=") + (f".{level}" if level else "")


class Panel:
    """A page's panel, and what its runner is asked and answers."""

    def __init__(self, page: Page) -> None:
        self.page, self.block = page, page.locator(".runner")
        page.route("**/javascripts/runner/client.mjs", lambda route: route.fulfill(
            body=CLIENT, content_type="text/javascript"))  # fmt: skip
        self.status, self.printed = (
            self.block.locator(".runner-status"),
            self.block.locator(".runner-printed"),
        )
        self.editor = self.block.locator(".cm-content")

    def button(self, name: str) -> Locator:
        return self.block.get_by_role("button", name=name, exact=True)

    def asked(self, count: int = 1) -> list:
        """What the runner was asked last, once it was asked so many times."""
        self.page.wait_for_function("count => window.asked?.length === count", arg=count)
        return self.page.evaluate("window.asked.at(-1)")

    def say(self, listener: str, value: object) -> None:
        self.page.evaluate("([name, value]) => window.played.now[name](value)", [listener, value])

    def answer(self, **result: object) -> None:
        self.say("resolve", RESULT | result)

    @property
    def text(self) -> str:
        """What the editor holds."""
        return self.editor.evaluate("e => e.cmTile.view.state.doc.toString()")

    def edit(self, name: str = "Edit") -> None:
        self.button(name).click()
        expect(self.editor).to_be_focused()

    def type_first(self, text: str) -> None:
        """Type a line at the top of the program."""
        self.editor.press("Control+Home")
        self.page.keyboard.type(text)
        self.editor.press("Enter")
