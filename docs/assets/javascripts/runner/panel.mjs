/**
 * The buttons of a program that can be run in the page. Whatever they need is loaded when one is pressed, or when the
 * address holds a program to be shown.
 */

/** @typedef {import("./workbench.mjs").Workbench} Workbench */

for (const block of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".runner"))) {
  /** @type {Promise<Workbench> | undefined} */
  let opened
  const status = /** @type {HTMLElement} */ (block.querySelector(".runner-status"))

  /** @param {(bench: Workbench) => unknown} act */
  async function use(act) {
    try {
      opened ??= import("./workbench.mjs").then(({ Workbench }) => new Workbench(block))
      act(await opened)
    } catch (error) {
      opened = undefined // the next press tries again
      status.textContent = `${block.dataset.failed} (${error instanceof Error ? error.message : error})`
    }
  }

  for (const act of /** @type {const} */ (["run", "check", "edit"])) {
    const button = /** @type {HTMLButtonElement} */ (block.querySelector(`button[data-act=${act}]`))
    button.addEventListener("click", () => use(bench => bench[act]()))
    button.disabled = false
  }
  const showShared = () => {
    if (location.hash.startsWith("#code=")) use(bench => bench.openLink(location.hash))
  }
  addEventListener("hashchange", showShared)
  showShared()
}
