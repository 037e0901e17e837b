// What the page and the worker say to each other. Types alone: this module has no code.

/**
 * @typedef {object} Manifest  the bundle, as the site's hook writes it to runner/manifest.json
 * @property {string} folder  where the packages are, below the manifest; named by their content
 * @property {string} project  the archive of our own files; named by its content
 * @property {Record<string, string>} extensions  numpy's compiled modules: path in the package -> file
 * @property {Record<string, number>} sizes  bytes of every file that is downloaded
 */

/**
 * @typedef {{kernel: string, program: [number, number, number], launch?: number}} StepsOf  whose steps a run shall
 *   record; launch: which launch of that kernel, the first if left out
 */
/** @typedef {{trace?: boolean, steps?: StepsOf | null, lang?: string}} RunOptions */

/**
 * @typedef {{type: "boot"}} Boot
 * @typedef {{type: "run", id: number, source: string, options: RunOptions}} Run
 * @typedef {{type: "check", id: number, lesson: string, level: string, source: string, lang: string}} Check
 * @typedef {{type: "explore", id: number, name: string, values: Record<string, unknown>, lang: string}} Explore
 * @typedef {Boot | Run | Check | Explore} ToWorker
 */

/**
 * @typedef {"download" | "start" | "triton"} Stage
 * @typedef {{type: "progress", stage: Stage, done: number, total: number}} Progress  in bytes; 0 of 0: not known
 * @typedef {{type: "ready", ms: number}} Ready
 * @typedef {{type: "stdout", id: number, text: string}} Stdout
 * @typedef {{type: "stage", id: number, text: string}} CheckStage  the case that a check begins
 * @typedef {{type: "result", id: number, result: any}} Result
 * @typedef {{type: "failed", id: number | null, message: string}} Failed  the runner itself, not the reader's code
 * @typedef {Progress | Ready | Stdout | CheckStage | Result | Failed} FromWorker
 */

export {};
