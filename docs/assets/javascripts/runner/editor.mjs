/** The editor: CodeMirror with Python, loaded on first use. Its colours are the page's own, in both schemes. */

/** @typedef {import("@codemirror/view").EditorView} EditorView */
/** @typedef {"error" | "step"} Kind of a marked line */

const BUNDLE = new URL("../../vendor/codemirror/codemirror.mjs", import.meta.url).href

/**
 * @param {{source: string, label: string, describedBy: string, onChange: () => void}} options describedBy: id of the help
 * @returns {Promise<Editor>}
 */
export async function createEditor({ source, label, describedBy, onChange }) {
  const cm = /** @type {typeof import("../../../../scripts/codemirror_entry.mjs")} */ (await import(BUNDLE))
  const { Decoration, EditorState, EditorView, HighlightStyle, StateEffect, StateField, keymap, tags } = cm

  /** @type {import("@codemirror/state").StateEffectType<{kind: Kind, line: number | null}>} */
  const mark = StateEffect.define()
  const marked = (/** @type {Kind} */ kind) => StateField.define({
    create: () => Decoration.none,
    update(lines, transaction) {
      for (const effect of transaction.effects) {
        if (!effect.is(mark) || effect.value.kind !== kind) continue
        if (effect.value.line === null) return Decoration.none
        const { from } = transaction.state.doc.line(effect.value.line)
        return Decoration.set([Decoration.line({ class: `cm-${kind}-line` }).range(from)])
      }
      return transaction.docChanged ? Decoration.none : lines
    },
    provide: field => EditorView.decorations.from(field),
  })

  const code = (/** @type {string} */ name) => `var(--md-code-hl-${name}-color)`
  const colours = HighlightStyle.define([
    { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: code("keyword") },
    { tag: tags.comment, color: code("comment") },
    { tag: tags.string, color: code("string") },
    { tag: [tags.number, tags.bool, tags.null], color: code("number") },
    { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: code("function") },
    { tag: tags.meta, color: code("special") },
    { tag: [tags.operator, tags.derefOperator], color: code("operator") },
    { tag: tags.punctuation, color: code("punctuation") },
  ])

  const view = new EditorView({
    state: EditorState.create({
      doc: source,
      extensions: [
        cm.lineNumbers(), cm.history(), cm.indentOnInput(), cm.bracketMatching(), cm.highlightActiveLine(),
        cm.indentUnit.of("    "), cm.pythonLanguage, cm.syntaxHighlighting(colours), marked("step"), marked("error"),
        keymap.of([...cm.defaultKeymap, ...cm.historyKeymap, cm.indentWithTab]),
        EditorView.contentAttributes.of({
          tabindex: "0", "aria-label": label, "aria-describedby": describedBy, autocapitalize: "off", autocorrect: "off", spellcheck: "false",
        }),
        EditorView.updateListener.of(update => { if (update.docChanged) onChange() }),
      ],
    }),
  })
  return new Editor(
    view,
    (kind, line) => view.dispatch({ effects: mark.of({ kind, line }) }),
    at => view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) }),
  )
}

export class Editor {
  /**
   * @param {EditorView} view @param {(kind: Kind, line: number | null) => void} set @param {(at: number) => void} show
   */
  constructor(view, set, show) {
    this.view = view
    this.set = set
    this.show = show
  }

  get element() {
    return this.view.dom
  }

  get text() {
    return this.view.state.doc.toString()
  }

  /** Another text; undo brings back the one before. */
  set text(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 } })
  }

  focus() {
    this.view.focus()
  }

  /** Mark a line and bring it into the editor's view, or mark none. @param {Kind} kind @param {number | null} line from 1 */
  mark(kind, line) {
    const { doc } = this.view.state
    const there = line !== null && line >= 1 && line <= doc.lines
    this.set(kind, there ? line : null)
    if (!there) return
    const { top, height } = this.view.lineBlockAt(doc.line(line).from)
    const { scrollDOM } = this.view
    // The page itself stays where it is.
    const away = top - scrollDOM.scrollTop
    if (away < 0 || away + height > scrollDOM.clientHeight) scrollDOM.scrollTop = top - scrollDOM.clientHeight / 2
  }

  /** Put the cursor at the beginning of a line, in view. @param {number} line counted from 1 */
  goTo(line) {
    const { from } = this.view.state.doc.line(Math.min(Math.max(1, line), this.view.state.doc.lines))
    this.show(from)
    this.view.focus()
  }
}
