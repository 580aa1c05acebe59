// Types in the real workbench, and looks at what the editor and the server say to each other meanwhile: that
// the extension asks nothing of its own per key, and that lenses whose lines have moved are still about their
// functions.
//
// Usage: node typing.js EDITORS VSIX     in the workspace of tests/editors/run
//
// Prints a line per check, and `done` at the end.
"use strict";
const { execFileSync } = require("node:child_process");
const path = require("node:path");
const { heard, tapped } = require("./tap.js");
const { Person, Workbench, checks, poll } = require("./workbench.js");

const [editors, vsix] = process.argv.slice(2).map((each) => path.resolve(each));
const check = checks("vscode typing");
const bench = new Workbench(editors, path.resolve("../vscode-typing"));
const log = path.join(bench.scratch, "log");

const LENS = "function 90.0%";
const ABOVE = ["// What is measured here", "// has been explained", "// in three lines."];
const KEYS = "// abcdefghijklmnopqrstuvwxyz0123456789ab";
const BETWEEN_MS = 100;
/** The extension waits for 250 ms; clocks of two processes are compared. */
const REST_MS = 150;
const PLAIN = {
  "editor.autoIndent": "none",
  "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" },
};

const placeholder = (person) => person.page.locator(".quick-input-box input").first().getAttribute("placeholder");

async function click(person) {
  await person.page.locator(".codelens-decoration a", { hasText: LENS }).click();
  await person.page.waitForSelector(".quick-input-widget:visible");
  const said = { at: await placeholder(person), offered: await person.text(".quick-input-list") };
  await person.press("Escape");
  return said;
}

async function lenses(person) {
  await person.goTo(1);
  for (const line of ABOVE) {
    await person.type(line);
    await person.press("Enter");
  }
  // The editor asks for lenses when typing has rested, and draws them a moment later: until then
  // those that it shows carry the line that was.
  const soon = await click(person);
  check("a lens is of its function as soon as lines are above it", soon.at === "main.rs:14" && soon.offered.includes("Callers and callees of this function"), soon);
  await person.page.waitForTimeout(3000);
  const later = await click(person);
  check("and after a while", later.at === "main.rs:14", later);
  const clicked = heard(log).filter(({ message }) => message.params?.command === "perflens.showActions");
  check("by what it says itself", clicked.length === 2 && clicked[1].message.params.arguments[0].line === 14, clicked.map(({ message }) => message.params.arguments));
}

async function keys(person) {
  await person.goTo(1);
  await person.page.waitForTimeout(2000);
  const before = heard(log).length;
  await person.page.keyboard.type(KEYS, { delay: BETWEEN_MS });
  await poll(() => heard(log).slice(before).filter(({ message }) => message.method === "textDocument/didChange").length, (count) => count >= KEYS.length, 20_000);
  const during = counted(before);
  await person.page.waitForTimeout(2000);
  const after = counted(before);
  check("every key is told", during["textDocument/didChange"] === KEYS.length, during);
  const told = (count) => Object.entries(count).map(([method, times]) => `${times} ${method}`).join(", ");
  const isOwn = (method) => method.startsWith("perflens/") || method === "workspace/executeCommand";
  // A busy machine holds keys up; where they rested, marks may be asked for, once.
  const pressed = heard(log).slice(before).filter(({ message }) => message.method === "textDocument/didChange").map(({ at }) => at);
  const rests = pressed.filter((at, key) => key > 0 && at - pressed[key - 1] >= REST_MS).length;
  const own = Object.entries(during).filter(([method]) => isOwn(method));
  const others = own.filter(([method]) => method !== "perflens/heat");
  check(`nothing of ours is asked while ${KEYS.length} keys are pressed, ${rests} of them after a rest (${told(during)})`, others.length === 0 && (during["perflens/heat"] ?? 0) <= rests, during);
  check(`and once when they rest (${told(after)})`, after["perflens/heat"] >= 1 && after["perflens/heat"] <= rests + 1, after);
}

// {method: how often} of what the editor has said since.
function counted(from) {
  const methods = heard(log).slice(from).filter((each) => each.from === "editor").map(({ message }) => message.method);
  const count = {};
  for (const method of methods.filter((each) => each !== undefined && each !== "$/cancelRequest")) count[method] = (count[method] ?? 0) + 1;
  return count;
}

async function main() {
  const program = path.join(bench.scratch, "perflens");
  tapped(execFileSync("sh", ["-c", "command -v perflens"], { encoding: "utf8" }).trim(), log, program);
  bench.settings(PLAIN);
  bench.settings({ "perflens.server.path": program }, "Machine");
  bench.install(vsix);
  await bench.serve("--disable-workspace-trust");
  const context = await bench.browser.newContext({ viewport: { width: 1280, height: 860 } });
  const person = new Person(await context.newPage());
  try {
    await person.open(bench, process.cwd(), "src/main.rs");
    await poll(() => person.text(".statusbar"), (got) => got.includes("no profile"));
    await person.palette("perflens: Open a profile");
    await person.pick("cpu.pb.gz");
    await poll(() => person.lenses(), (got) => got.some((each) => each.startsWith(LENS)));
    for (const step of [lenses, keys]) await step(person);
    console.log("done");
  } catch (problem) {
    await person.picture("typing-broken").catch(() => {});
    check("the script", false, problem.stack);
  } finally {
    await bench.stop();
  }
}

main().catch((problem) => {
  check("the script", false, problem.stack);
  process.exit(1);
});
