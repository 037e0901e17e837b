/**
 * One GPU's measurements at a time. A set holds a panel for each GPU (data-gpu); without this module all are shown,
 * one after the other. The choice holds for all sets of all pages and is kept by the browser.
 */

const KEY = "gpu"

/** @param {HTMLElement} panel @returns {string} the GPU's name, as the panel's heading gives it */
const nameOf = panel => (panel.querySelector(".gpu-name, h3, h4, h5, caption")?.textContent ?? panel.dataset.gpu).trim()

/** @type {{select: HTMLSelectElement, panels: HTMLElement[]}[]} */
const sets = []

/** Show a GPU in every set that has it. @param {string} gpu */
function choose(gpu) {
  for (const { select, panels } of sets) {
    if (!panels.some(panel => panel.dataset.gpu === gpu)) continue
    select.value = gpu
    for (const panel of panels) panel.hidden = panel.dataset.gpu !== gpu
  }
}

for (const set of document.querySelectorAll(".gpu-set")) {
  const panels = [...set.querySelectorAll(":scope > .gpu-panel")]
  if (panels.length < 2) continue
  const label = document.createElement("label")
  const select = document.createElement("select")
  for (const panel of panels) select.add(new Option(nameOf(panel), panel.dataset.gpu))
  select.addEventListener("change", () => {
    localStorage.setItem(KEY, select.value)
    choose(select.value)
  })
  label.className = "gpu-picker"
  label.append("GPU ", select)
  set.prepend(label)
  set.classList.add("picked")
  sets.push({ select, panels })
  choose(panels[0].dataset.gpu)
}

const kept = localStorage.getItem(KEY)
if (kept) choose(kept)
