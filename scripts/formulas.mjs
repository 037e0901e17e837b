// Draws formulas with KaTeX: JSON of [{tex, block}] on stdin, JSON of their HTML on stdout.
//
//     node scripts/formulas.mjs     (called by scripts/formulas.py)

import { readFileSync } from "node:fs";
import katex from "katex";

const drawn = JSON.parse(readFileSync(0, "utf-8")).map(({ tex, block }) => {
  try {
    return { html: katex.renderToString(tex, { displayMode: block, strict: "error" }) };
  } catch (error) {
    return { error: error.message };
  }
});
process.stdout.write(JSON.stringify(drawn));
