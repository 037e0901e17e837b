/** The style rules of the page map and the stepper, fetched with the first of them: no page needs them before. */

const ADDRESS = new URL("../../stylesheets/runner_views.css", import.meta.url).href

export function wantStyle() {
  if (document.querySelector(`link[href="${ADDRESS}"]`)) return
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: ADDRESS })
  document.head.append(link)
}
