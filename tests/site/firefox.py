"""Firefox as tests use it: a process that is asked line by line, and a tab whose state is waited for."""

import json
import subprocess
from functools import partialmethod
from pathlib import Path
from typing import Any

from scripts.browsers import WAKE, node

ROOT = Path(__file__).resolve().parents[2]
BUTTON = """name => {
  const named = button => button.textContent === name && !button.disabled && button.checkVisibility()
  const button = [...document.querySelectorAll(".runner button")].find(named)
  button?.focus()
  return Boolean(button) && button === document.activeElement
}"""
CODE = "() => document.querySelector('.cm-content')?.cmTile.view.state.doc.toString()"
FOCUS = "selector => Boolean(document.activeElement.closest(selector))"
SHOWS = """(selector, text) => {
  const element = document.querySelector(selector)
  return Boolean(element?.checkVisibility() && element.textContent.includes(text))
}"""
TEXTS = "selector => [...document.querySelectorAll(selector)].map(element => element.textContent)"


class Firefox:
    """One Firefox with one tab, driven by tests/js/firefox.mjs."""

    def __init__(self, path: str, address: str) -> None:
        self.address = address
        command, pipe = [node(), "tests/js/firefox.mjs", path], subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, encoding="utf-8")

    def ask(self, name: str, *arguments: object) -> Any:
        print(json.dumps([name, *arguments]), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, "Firefox, or what drives it, has ended; stderr says why"
        answer = json.loads(line)
        assert "error" not in answer, f"{name} {arguments}: {answer['error']}"
        return answer.get("value")

    press = partialmethod(ask, "press")
    type = partialmethod(ask, "type")
    click = partialmethod(ask, "click")
    hover = partialmethod(ask, "hover")
    fill = partialmethod(ask, "fill")
    evaluate = partialmethod(ask, "evaluate")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)

    def open(self, path: str) -> None:
        """A page of the site, in a tab that keeps nothing of the last one, awake as if somebody read it."""
        self.ask("open", self.address + path)
        self.evaluate(WAKE)

    def reload(self) -> None:
        self.ask("reload")
        self.evaluate(WAKE)

    def until(self, function: str, wanted: object, *arguments: object) -> None:
        """Wait until the function gives this in the page."""
        __tracebackhide__ = True
        same = f"(wanted, ...rest) => JSON.stringify(({function})(...rest)) === JSON.stringify(wanted)"
        try:
            self.ask("wait", same, wanted, *arguments)
        except AssertionError:
            found = self.evaluate(function, *arguments)
            raise AssertionError(f"{function} {arguments} gives {found!r}; wanted {wanted!r}") from None

    def push(self, name: str) -> None:
        """Press a button of the runner, by keys: parts of the page that still move do no harm then."""
        self.until(BUTTON, True, name)
        self.press("Enter")

    def shows(self, selector: str, text: str) -> None:
        """Wait until the first such element is visible with this in its text."""
        __tracebackhide__ = True
        try:
            self.until(SHOWS, True, selector, text)
        except AssertionError:
            found = self.texts(selector)
            raise AssertionError(f"{selector} is {found}; wanted it visible, with {text!r}") from None

    def has_focus(self, selector: str) -> None:
        """Wait until this, or what is in it, has the focus."""
        self.until(FOCUS, True, selector)

    def holds(self, code: str) -> None:
        """Wait until the editor holds this."""
        self.until(CODE, code)

    def texts(self, selector: str) -> list[str]:
        return self.evaluate(TEXTS, selector)
