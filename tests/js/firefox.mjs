// Firefox, one tab at a time, for tests in Python: a line of JSON on stdin is [what to do, ...with what], and the
// next line on stdout is { value } or { error }. It ends with its stdin.
//
//     node tests/js/firefox.mjs FIREFOX      (called by tests/site/firefox.py)

import { createInterface } from "node:readline";
import puppeteer from "puppeteer-core";

const PATIENCE = 120_000; // ms: other tests may have the machine's cores

const browser = await puppeteer.launch({
  browser: "firefox", executablePath: process.argv[2], headless: true,
  defaultViewport: { width: 1440, height: 900 },
});
let page, problems;

const called = (source, args) => `(${source})(...${JSON.stringify(args)})`;
const actions = {
  version: () => browser.version(),
  /** A tab that nobody has used, with nothing kept from the last one. */
  async open(url) {
    await page?.browserContext().close();
    page = await (await browser.createBrowserContext()).newPage();
    page.setDefaultTimeout(PATIENCE);
    const found = (problems = []);
    page.on("pageerror", (error) => found.push(`throws ${error.message}`));
    page.on("console", (message) => message.type() === "error" && found.push(`says ${message.text()}`));
    page.on("response", (answer) => answer.status() >= 400 && found.push(`${answer.status()} ${answer.url()}`));
    page.on("request", (request) => {
      if (![new URL(url).origin, "null"].includes(new URL(request.url()).origin)) found.push(`asks ${request.url()}`);
    });
    await page.goto(url);
  },
  reload: async () => void (await page.reload()),
  problems: () => problems,
  /** Keys one after the other; "Control+Home" is both at once. */
  async press(...keys) {
    for (const key of keys) {
      const held = key.split("+");
      const last = held.pop();
      for (const each of held) await page.keyboard.down(each);
      await page.keyboard.press(last);
      for (const each of held.reverse()) await page.keyboard.up(each);
    }
  },
  type: (text) => page.keyboard.type(text),
  // With the pointer, once the element is in view and stands still.
  click: (selector) => page.locator(selector).click(),
  hover: (selector) => page.locator(selector).hover(),
  fill: (selector, value) => page.locator(selector).fill(value),
  evaluate: (source, ...args) => page.evaluate(called(source, args)),
  wait: async (source, ...args) => void (await page.waitForFunction(called(source, args))),
  screenshot: async (path) => void (await page.screenshot({ path })),
};

try {
  for await (const line of createInterface({ input: process.stdin })) {
    const [name, ...args] = JSON.parse(line);
    const answer = await Promise.resolve(actions[name](...args)).then(
      (value) => ({ value }),
      (error) => ({ error: error.message }),
    );
    console.log(JSON.stringify(answer));
  }
} finally {
  await browser.close();
}
