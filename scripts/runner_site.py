"""Put the in-page runner into a built site: the bundle, and an archive of our own files as they are now."""

import hashlib
import json
import logging
import shutil
from pathlib import Path

from scripts.runner_bundle import BUNDLE, COMMAND, BundleError, compressed, manifest
from scripts.runner_files import project_archive

RUNNER = "assets/runner"  # in the site
log = logging.getLogger("mkdocs.runner")


def place_runner(site: Path) -> None:
    """Write <site>/assets/runner. Without a bundle the pages say that they cannot run kernels."""
    try:
        made = manifest()
    except BundleError:
        log.warning("no in-page runner, so Run will say that it is not there; make it with: %s", COMMAND)
        return
    target = site / RUNNER
    shutil.copytree(BUNDLE / made["folder"], target / made["folder"], dirs_exist_ok=True)
    (target / "licences").mkdir(exist_ok=True)
    for text in (BUNDLE / made["folder"]).glob("*.txt"):
        shutil.copy(text, target / "licences")  # under a name that does not change
    project = compressed(project_archive(BUNDLE / "project"))
    name = f"project-{hashlib.sha256(project).hexdigest()[:12]}.zip.bin"
    (target / name).write_bytes(project)
    sizes = {f"{made['folder']}/{file}": size["bytes"] for file, size in made["files"].items()}
    known = {"folder": made["folder"], "project": name, "extensions": made["extensions"],
             "sizes": sizes | {name: len(project)}}  # fmt: skip
    (target / "manifest.json").write_text(json.dumps(known), encoding="utf-8")
