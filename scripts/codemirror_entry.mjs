/** What the page's editor is made of: scripts/vendor.py bundles this into docs/assets/vendor/codemirror. */

export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands"
export { pythonLanguage } from "@codemirror/lang-python"
export { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language"
export { EditorState, StateEffect, StateField } from "@codemirror/state"
export { Decoration, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view"
export { tags } from "@lezer/highlight"
