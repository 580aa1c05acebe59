// Opens pages of `perflens report --format html` in a browser, and does with them what people do.
//
// Usage: node test.js EDITORS PERFLENS     in the workspace of tests/editors/run, with ../demo beside it
//
// Prints a line per check, and `done` at the end.
"use strict";
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const [editors, perflens] = process.argv.slice(2).map((each) => path.resolve(each));
const { chromium } = require(path.join(editors, "client/node_modules/playwright-core"));
const screens = process.env.PERFLENS_SCREENS;
const HOSTILE = ["</script><img src=x onerror=hacked()>", "<script>hacked()</script>", "\"'&lt<!--", "javascript:hacked()"];

function check(name, ok, detail) {
  const after = ok ? "" : `: ${JSON.stringify(detail)}`;
  console.log(`${ok ? "ok" : "FAILED"} page: ${name}${after}`);
}

const equal = (name, wanted, got) => check(name, JSON.stringify(got) === JSON.stringify(wanted), { wanted, got });
const matches = (name, wanted, got) => check(name, wanted.test(got), { wanted: String(wanted), got });

// Writes a page beside the workspace.
function report(name, ...options) {
  const html = execFileSync(perflens, ["report", ...options, "--format", "html"], { maxBuffer: 64 << 20 });
  const file = path.resolve("..", `${name}.html`);
  fs.writeFileSync(file, html);
  return file;
}

// Opens a page, and notes whatever it complains about or asks the network for.
async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const tab = await context.newPage();
  const complaints = [];
  tab.on("console", (message) => complaints.push(message.text()));
  tab.on("pageerror", (error) => complaints.push(String(error)));
  tab.on("dialog", (dialog) => complaints.push(dialog.message()));
  tab.on("request", (request) => complaints.push(request.url()));
  const address = pathToFileURL(file).href;
  await tab.goto(address);
  return { tab, complaints: () => complaints.filter((each) => each !== address) };
}

const boxes = (tab) => tab.locator(".box").evaluateAll((all) => all.map((each) => each.getAttribute("aria-label")));
const picture = (tab, name) => tab.screenshot({ path: path.join(screens, `page-${name}.png`), fullPage: true });

async function reading(browser, file) {
  const { tab, complaints } = await open(browser, file);
  matches("says what was measured", /cpu\.pb\.gz · cpu 2\.00s · 200 samples/, await tab.locator("body > header").innerText());
  equal("the flame graph begins with the outermost callers", true, (await boxes(tab)).slice(0, 2).includes("words::main, 98.0% 1.96s"));
  equal("and is as wide as what it costs", true, (await boxes(tab)).includes("words::measure, 40.0% 800ms"));
  matches("hot lines come by what they cause", /40\.0%\s+800ms[^\n]*words::measure\s+src\/main\.rs:22/, await tab.locator(".hot tbody tr").first().innerText());
  await tab.locator(".hot tbody a").first().click();
  matches("a hot line leads to its source", /22\s+│\s+word\.chars\(\)/, await tab.locator("tr:target").innerText());
  matches("what it holds is said", /source text of src\/main\.rs/, await tab.locator(".about").innerText());
  equal("nothing is loaded, nothing complains", [], complaints());
  await picture(tab, "light");
  await tab.emulateMedia({ colorScheme: "dark" });
  await picture(tab, "dark");
  await tab.emulateMedia({ colorScheme: "light", forcedColors: "active" });
  await picture(tab, "contrast");
  await tab.context().close();
}

async function walking(browser, file) {
  const { tab, complaints } = await open(browser, file);
  await tab.keyboard.press("/");
  await tab.keyboard.type("measure");
  equal("a search sums what it finds", "40.0% found", await tab.locator(".found").first().innerText());
  await tab.keyboard.press("Enter");
  await tab.keyboard.press("ArrowDown");
  matches("arrows walk from the outermost", /words::main\s+98\.0% 1\.96s/, await tab.locator(".details").innerText());
  await tab.keyboard.press("ArrowDown");
  matches("and down the widest", /words::group\s+90\.0%/, await tab.locator(".details").innerText());
  await tab.keyboard.press("Enter");
  const width = () => tab.locator(".box.selected").evaluate((box) => box.style.width);
  equal("Enter zooms", "100%", await width());
  await tab.keyboard.press("o");
  equal("o leads to the source", "11", new URL(tab.url()).hash.split("-")[1]);
  await tab.locator(".boxes").focus();
  await tab.keyboard.press("Escape");
  equal("Escape shows everything again", "90%", await width());
  await tab.locator(".box", { hasText: "measure" }).first().click();
  equal("a click zooms", "100%", await width());
  await tab.getByText("Reset zoom").click();
  equal("the search is still there", "measure", await tab.locator(".search").inputValue());
  await tab.locator(".search").press("Escape");
  equal("until it is cleared", "", await tab.locator(".found").first().innerText());
  equal("nothing complains", [], complaints());
  await tab.context().close();
}

async function withoutScripts(browser, file) {
  const { tab } = await open(browser, file, { javaScriptEnabled: false });
  matches("without scripts there are lines and source", /words::measure[\s\S]*split_whitespace/, await tab.locator("body").innerText());
  await tab.context().close();
}

async function hostile(browser) {
  const folder = path.resolve("../hostile");
  fs.mkdirSync(folder, { recursive: true });
  const stacks = HOSTILE.map((name, at) => `main;${name.replaceAll(" ", "\u00a0")} ${10 + at}`);
  fs.writeFileSync(path.join(folder, "</title><script>hacked()<!--.folded".replaceAll("/", "-")), `${stacks.join("\n")}\n`);
  const [name] = fs.readdirSync(folder);
  const { tab, complaints } = await open(browser, report("hostile", path.join(folder, name)));
  const elements = await tab.evaluate(() => ({
    images: document.images.length,
    scripts: document.scripts.length,
    handlers: [...document.querySelectorAll("*")].filter((each) => [...each.attributes].some(({ name }) => name.startsWith("on"))).length,
    links: [...document.links].filter((each) => !each.getAttribute("href").startsWith("#")).length,
  }));
  equal("names that look like elements are text", { images: 0, scripts: 2, handlers: 0, links: 0 }, elements);
  const text = await tab.locator("body").innerText();
  const missing = HOSTILE.filter((each) => !text.replaceAll("\u00a0", " ").includes(each));
  equal("and are shown as they are", [], missing);
  equal("and do nothing", [], complaints());
  await picture(tab, "hostile");
  await tab.context().close();
}

// What would say who made it and where.
function isPrivate() {
  const home = path.resolve("../home");
  const stacks = `main;${home}/secret/app.py:work:3 5\nmain;/home/someone/secret/lib.py:load:4 5\n`;
  fs.writeFileSync("../private.folded", stacks);
  const environment = { ...process.env, HOME: home, USER: "perflensuser" };
  const html = execFileSync(perflens, ["report", "../private.folded", "--format", "html"], { env: environment }).toString();
  equal("home folders are not in it", [false, false], [html.includes(home), html.includes("someone")]);
}

async function large(browser) {
  const stack = (at) => Array.from({ length: 40 }, (_, depth) => `frame${depth < 20 ? depth : at * 40 + depth}`).join(";");
  const stacks = Array.from({ length: 3000 }, (_, at) => `${stack(at)} ${1 + (at % 7)}`);
  fs.writeFileSync("../large.folded", `${stacks.join("\n")}\n`);
  const file = report("large", "../large.folded");
  const { tab, complaints } = await open(browser, file);
  const data = await tab.locator("#flamegraph-data").evaluate((element) => element.textContent.length);
  const rest = fs.statSync(file).size - data;
  check("120 000 frames make a page that is data for the most part", rest < 1 << 20, rest);
  equal("and it shows", "frame0, 100% 12.0k", (await boxes(tab))[0]);
  equal("without complaint", [], complaints());
  await tab.context().close();
}

async function comparing(browser) {
  const { tab, complaints } = await open(browser, report("compared", "after.pb.gz", "--base", "cpu.pb.gz", "--workspace", "."));
  matches("a comparison names both sides", /after\.pb\.gz against cpu\.pb\.gz/, await tab.locator("body > header").innerText());
  matches("and its lines are what changed", /measure/, await tab.locator(".hot tbody tr").first().innerText());
  equal("without complaint", [], complaints());
  await picture(tab, "compare");
  await tab.context().close();
}

async function main() {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    const file = report("words", "cpu.pb.gz", "--workspace", ".");
    await reading(browser, file);
    await walking(browser, file);
    await withoutScripts(browser, file);
    await hostile(browser);
    isPrivate();
    await large(browser);
    await comparing(browser);
    const { tab } = await open(browser, report("demo", "../demo/cpu.pb.gz", "--workspace", "../demo"));
    await picture(tab, "demo");
  } finally {
    await browser.close();
  }
  console.log("done");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
