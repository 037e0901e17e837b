// Presses the buttons of a lesson's page in Firefox, and prints what came of it as JSON.
//
//     node tests/js/firefox.mjs FIREFOX ADDRESS-OF-THE-LESSON      (called by tests/site/test_runner_firefox.py)

import puppeteer from "puppeteer-core";

const [executablePath, address] = process.argv.slice(2);
const ENDLESS = "import time\nwhile True:\n    time.sleep(0)\n";
const browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true });
const problems = [];
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto(address, { waitUntil: "networkidle0" });
  await page.mouse.move(200, 200); // somebody is there: what the page puts off until then begins
  // By keys: a page that is still laying itself out may move under the pointer.
  const press = async (part) => {
    await page.waitForSelector(`.runner ${part}:not([disabled])`);
    await page.focus(`.runner ${part}`);
    await page.keyboard.press("Enter");
  };
  const started = () => page.waitForSelector(".runner-stop:not([hidden])", { timeout: 120_000 });
  const calm = () => page.waitForSelector(".runner [data-act=run]:not([hidden])", { timeout: 120_000 });
  const text = (part) => page.$eval(`.runner ${part}`, (element) => element.textContent).catch(() => "");

  await press("[data-act=run]");
  await started();
  await calm();
  const first = { printed: await text(".runner-printed"), error: await text(".runner-error") };

  // An address with a program that never ends: shown, not run, until Run is pressed; Stop ends it.
  await page.evaluate(async (source) => {
    const site = new URL("../../", location.href);
    const { toHash } = await import(new URL("javascripts/runner/share.mjs", site).href);
    location.hash = await toHash(source, "");
  }, ENDLESS);
  await page.waitForSelector(".runner-notice:not([hidden])");
  const shown = { notice: await text(".runner-notice"), code: await text(".cm-content") };
  await press("[data-act=run]");
  await started();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const running = await page.$eval(".runner", (runner) => runner.ariaBusy);
  await press(".runner-stop");
  await calm();
  const stopped = await text(".runner-status");
  console.log(JSON.stringify({ version: await browser.version(), first, shown, running, stopped, problems }));
} finally {
  await browser.close();
}
