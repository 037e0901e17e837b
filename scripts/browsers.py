"""The programs of the machine that pages are built and measured with: Node.js and Chromium."""

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def node() -> str:
    """Node.js: the machine's, or else the one that `make` puts into the venv."""
    return shutil.which("node") or str(ROOT / ".venv/bin/node")


def chromium() -> str | None:
    """Chromium: what CHROMIUM names, or the machine's; None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


# A page puts most of what it can do off until there is a reader (javascripts/wake.mjs). Evaluated in a page,
# this is as if there were one, and waits until all of it is there.
WAKE = """async () => {
  const site = document.querySelector("script[src$='javascripts/site.mjs']")
  if (!site) return
  await (await import(new URL("wake.mjs", site.src))).wake()
  await import(site.src)
}"""
