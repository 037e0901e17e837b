// Runs scripts/runner_compile.py inside Pyodide, on the folders of the machine: only there is the Python that will
// run in the page, so only there can its byte code be compiled and its imports be seen.
//
//     node scripts/runner_compile.mjs PYODIDE_FOLDER JOB.json     (called by scripts/runner_bundle.py)

import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [pyodideFolder, job] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(join(pyodideFolder, "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: pyodideFolder + "/", fullStdLib: false });
const { folders } = JSON.parse(readFileSync(job, "utf-8"));
for (const [inside, outside] of Object.entries(folders)) {
  python.FS.mkdirTree(inside);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: outside }, inside);
}
python.FS.writeFile("/job.json", readFileSync(job, "utf-8"));
const script = join(dirname(fileURLToPath(import.meta.url)), "runner_compile.py");
python.runPython(readFileSync(script, "utf-8"));
