// Runs a Python file inside Pyodide under node, with this repository and a folder with numpy: the WebAssembly that
// runs in the page, without a browser.
//
//     node tests/runner/pyodide.mjs FOLDER_WITH_NUMPY SCRATCH_FOLDER     (runs SCRATCH_FOLDER/main.py)

import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { backtrace } from "../../docs/assets/javascripts/runner/backtrace.mjs";
import { loadPyodide } from "../../node_modules/pyodide/pyodide.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const [numpy, scratch] = process.argv.slice(2).map((path) => resolve(path));
const python = await loadPyodide({ indexURL: join(root, "node_modules/pyodide/") });
for (const [inside, outside] of Object.entries({ "/repository": root, "/numpy": numpy, "/scratch": scratch })) {
  python.FS.mkdirTree(inside);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: outside }, inside);
}
python.FS.writeFile("/backtrace.so", backtrace);
await python._module.loadDynamicLibrary("/backtrace.so", { loadAsync: true, global: true, nodelete: true, fs: python.FS });
python.runPython(`
import sys
sys.dont_write_bytecode = True
sys.path[:0] = ["/repository/scripts/runner/standins", "/repository", "/numpy"]
`);
python.runPython(readFileSync(join(scratch, "main.py"), "utf-8"));
