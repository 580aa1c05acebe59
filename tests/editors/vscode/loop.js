// Drives the whole loop in the real workbench: profiles a test by its lens, edits above it and in it, profiles it
// again, and compares with what it was before.
//
// Usage: node loop.js EDITORS VSIX     in the workspace of tests/editors/run, with ../sums beside it
//
// Prints a line per check, and `done` at the end. Pictures of each step are left in the folder of screens.
"use strict";
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { Person, Workbench, checks, poll } = require("./workbench.js");

const [editors, vsix] = process.argv.slice(2).map((each) => path.resolve(each));
const sums = path.resolve("../sums");
const check = checks("vscode loop");
const bench = new Workbench(editors, path.resolve("../vscode-loop"));

const HOT = "/* hot */";
const STEADY = "/* steady */";
const ABOVE = ["/* What is measured here", "   has been explained", "   in three lines. */"];

async function shows(name, probe, ...wanted) {
  const has = (got) => wanted.every((each) => (each instanceof RegExp ? each.test(got) : got.includes(each)));
  // What is shown for a while only may say why what is wanted does not come.
  const before = [];
  const got = await poll(async () => {
    const now = await probe();
    if (now !== before.at(-1)) before.push(now);
    return now;
  }, has);
  return check(name, has(got), { wanted: wanted.map(String), got, before: before.slice(-5, -1) });
}

const status = (person) => person.text(".statusbar");
const toasts = (person) => person.text(".notifications-toasts");

// What stands behind the code of a line with this text.
async function hint(person, text) {
  const line = (await person.lines()).find((each) => each.includes(text)) ?? "";
  return line.split(text)[1]?.trim() ?? "";
}

// The number of the line with a text, from 1, as it is on disk.
const lineOf = (text) => fs.readFileSync(path.join(sums, "sums.c"), "utf8").split("\n").findIndex((line) => line.includes(text)) + 1;

async function profile(person) {
  const lens = person.page.locator(".codelens-decoration a", { hasText: "profile this function" }).first();
  await lens.click({ timeout: 60_000 });
  await shows("it tells what was measured", () => toasts(person), /\d+ samples in \d+ runs/, "set-up and left out");
}

// Takes away what was told, so that it is not in the way of what comes.
async function quiet(person) {
  await person.palette("Notifications: Clear All Notifications");
  await poll(() => toasts(person), (got) => got === "");
}

async function loop(person) {
  await person.open(bench, sums, "sums.c");
  await shows("a test has a lens", async () => (await person.lenses()).join("\n"), "profile this function");
  await person.picture("loop-before");
  await profile(person);
  await shows("its hot line has two thirds", () => hint(person, HOT), /6\d\.\d%/);
  await shows("and the steady one a third", () => hint(person, STEADY), /3\d\.\d%/);
  // Both come anew while it is recorded, and not at once.
  const totals = async () => [await hint(person, "test_without_lines(1000);"), ...(await person.lenses())].join("\n");
  await shows("lenses say what hints say", totals, /^\S+ 100% (\S+)\n[^]*function 100% \1(\s|$)/);
  await person.page.mouse.move(5, 5);
  await person.picture("loop-profiled");
  await quiet(person);

  // Above, where it moves everything; then in the hot line.
  const before = await hint(person, STEADY);
  await person.goTo(lineOf("hot(uint64_t rounds) {"));
  for (const line of ABOVE) {
    await person.press("Home");
    await person.type(line);
    await person.press("Enter");
  }
  await shows("lines that moved keep their cost", () => hint(person, STEADY), before);
  await person.press("Control+s");
  await poll(async () => lineOf(ABOVE[2]) > 0, (isSaved) => isSaved);
  await person.page.mouse.move(5, 5);
  await person.picture("loop-shifted");
  const text = fs.readFileSync(path.join(sums, "sums.c"), "utf8").split("\n");
  await person.goTo(lineOf(HOT), text[lineOf(HOT) - 1].indexOf("2 * rounds") + 1);
  await person.press("Shift+ArrowRight");
  await person.type("1");
  await person.press("Control+s");
  await poll(async () => lineOf("1 * rounds") > 0, (isSaved) => isSaved);
  await shows("a line that was edited shows nothing", async () => `[${await hint(person, HOT)}]`, "[]");

  await profile(person);
  await quiet(person);
  await person.palette("perflens: Compare with another profile");
  await shows("bases are offered by what they are", () => person.text(".quick-input-list"), "Before my edit", "Merge-base", "A profile");
  await person.picture("loop-bases");
  await person.pick("Before my edit");
  await shows("the base is named", () => status(person), "cpu test_sums vs before my edit");
  await shows("and so is its file", () => toasts(person), /compared with before my edit: \S+sums\.pb\.gz/);
  await shows("what became cheaper says by how much", () => hint(person, HOT), /^▼ ~?−\d\d\.\dpp \S+→\S+$/);
  await shows("what stayed says that, or nothing", () => hint(person, STEADY), /^$|^≈/);
  await shows("functions too, with the interval", async () => (await person.lenses()).join("\n"), /function ▼ −\d\d\.\dpp ±\d+\.\d/);
  await quiet(person);
  await person.page.mouse.move(5, 5);
  await person.picture("loop-compared");
  const hover = await person.hover(HOT);
  check("a hover says how sure that is", /Improved, ±\d+\.\dpp \(95 %\): \d+→\d+ samples here/.test(hover), hover);
  await person.picture("loop-verdict");
  await person.page.mouse.move(5, 5);
  await person.palette("perflens: Stop comparing");
  await shows("alone again", () => hint(person, HOT), /\d\d\.\d%/);

  await person.palette("perflens: Set filters");
  await shows("filters are offered, with those that apply", () => person.text(".quick-input-list"), "Write a filter", "Take back fn");
  await person.picture("loop-filters");
  await person.press("Escape");
  await person.goTo(lineOf(HOT));
  await person.palette("perflens: Show what can be done here");
  await shows("a function can be all that counts", () => person.text(".quick-input-list"), /Only under this function: leaves out \d+%/);
  await person.picture("loop-function");
  await person.pick("Only under this function");
  await shows("and is", () => hint(person, HOT), "100%");
  await person.picture("loop-filtered");
}

async function main() {
  fs.mkdirSync(process.env.PERFLENS_SCREENS, { recursive: true });
  const git = (...words) => execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...words], { cwd: sums });
  git("add", "sums.c", "perflens.toml");
  git("commit", "--quiet", "-m", "first");
  bench.settings({ "workbench.colorTheme": "Dark Modern", "workbench.activityBar.location": "hidden", "editor.autoIndent": "none", "editor.autoClosingBrackets": "never", "editor.autoClosingComments": "never", "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" } });
  const said = bench.install(vsix);
  check("the package installs", said.includes("successfully installed"), said);
  await bench.serve("--disable-workspace-trust");
  const context = await bench.browser.newContext({ viewport: { width: 1760, height: 860 } });
  const person = new Person(await context.newPage());
  try {
    await loop(person);
    console.log("done");
  } catch (problem) {
    await person.picture("loop-broken").catch(() => {});
    check("the script", false, problem.stack);
  } finally {
    await bench.stop();
  }
}

main().catch((problem) => {
  check("the script", false, problem.stack);
  process.exit(1);
});
