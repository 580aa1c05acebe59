// What is asked before a profiling server is, or something is recorded, in the real workbench: types, labels and
// values, times; processes and commands. The server is `fake-pyroscope` of the tests.
//
// Usage: node asking.js EDITORS VSIX SERVER     in the workspace of tests/editors/run
//
// Prints a line per check, and `done` at the end. Pictures are left in the folder of screens.
"use strict";
const { spawn } = require("node:child_process");
const path = require("node:path");
const { Person, Workbench, checks, poll } = require("./workbench.js");

const [editors, vsix, fake] = process.argv.slice(2).map((each) => path.resolve(each));
const workspace = process.cwd();
const check = checks("vscode asking");
const bench = new Workbench(editors, path.resolve("../vscode-asking"));

async function shows(name, probe, ...wanted) {
  const has = (got) => wanted.every((each) => (each instanceof RegExp ? each.test(got) : got.includes(each)));
  const got = await poll(probe, has);
  return check(name, has(got), { wanted: wanted.map(String), got });
}

const status = (person) => person.text(".statusbar");
const list = (person) => person.text(".quick-input-list");

// Ticks entries of a list that takes several.
async function tick(person, ...labels) {
  for (const label of labels) {
    await person.page.locator(".quick-input-list .monaco-list-row", { hasText: label }).first().click({ timeout: 20_000 });
  }
}

async function queries(person) {
  await person.palette("perflens: Ask the profiling server");
  await shows("presets and types are offered", () => list(person), "on-CPU 15m", "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
  await person.picture("asking-types");
  await person.pick("process_cpu:cpu:nanoseconds");
  await shows("then its labels", () => list(person), "pod", "service_name");
  await person.picture("asking-labels");
  await tick(person, "service_name");
  await person.press("Enter");
  await shows("then their values", () => list(person), "api", "jobs", "web");
  await tick(person, "api", "web");
  await person.picture("asking-values");
  await person.press("Enter");
  await shows("then times", () => list(person), "The last 15m", "Another time");
  await person.picture("asking-times");
  await person.pick("The last 15m");
  await shows("what was picked is asked for", () => status(person), "300ms");
  await shows("and shown", async () => (await person.lines()).join("\n"), "100% 300ms");
  await person.picture("asking-shown");
}

async function times(person) {
  await person.palette("perflens: Set the time range");
  await person.pick("Another time");
  await person.page.waitForSelector(".quick-input-widget:visible");
  await person.type("yesterday");
  await shows("what is no time is said at once", () => person.text(".quick-input-message"), "Write it as 30m");
  await person.picture("asking-time");
  for (let each = 0; each < "yesterday".length; each++) await person.press("Backspace");
  await person.type("3h");
  await person.press("Enter");
  await shows("a time of one's own is asked for", () => status(person), "400ms");
  await shows("hints are of it", async () => (await person.lines()).join("\n"), "100% 400ms");
  await shows("and lenses", async () => (await person.lenses()).join("\n"), "100% 400ms");
}

async function recording(person) {
  const busy = spawn("sh", ["-c", "while :; do :; done"], { cwd: workspace, stdio: "ignore" });
  try {
    await person.palette("perflens: Record");
    await shows("processes of the workspace are offered, and a command", () => list(person), "A command", "running in this workspace", String(busy.pid));
    await person.picture("asking-processes");
    await person.pick(String(busy.pid));
    await shows("then what of it", () => list(person), "Time on a processor", "Time waiting", "Memory");
    await person.picture("asking-events");
    await person.pick("Time on a processor");
    await shows("it is recorded", () => status(person), "Recording");
    await shows("and said for how long", () => status(person), /cpu \ds/);
    await person.picture("asking-recording");
    await person.palette("perflens: Stop recording");
    await shows("until it is stopped", () => person.text(".notifications-toasts"), /sh: .*samples/);
  } finally {
    busy.kill();
  }
}

async function main() {
  const server = spawn(fake, { stdio: ["pipe", "pipe", "inherit"] });
  const address = await new Promise((resolve) => server.stdout.once("data", (chunk) => resolve(chunk.toString().trim())));
  bench.settings({ "workbench.colorTheme": "Dark Modern" });
  bench.settings({ "perflens.source.address": address, "perflens.source.kind": "pyroscope" }, "Machine");
  bench.install(vsix);
  await bench.serve("--disable-workspace-trust");
  const context = await bench.browser.newContext({ viewport: { width: 1280, height: 860 } });
  const person = new Person(await context.newPage());
  try {
    await person.open(bench, workspace, "src/main.rs");
    await poll(() => status(person), (got) => got.includes("no profile"));
    for (const step of [queries, times, recording]) await step(person);
    console.log("done");
  } catch (problem) {
    await person.picture("asking-broken").catch(() => {});
    check("the script", false, problem.stack);
  } finally {
    await bench.stop();
    server.stdin.end();
  }
}

main().catch((problem) => {
  check("the script", false, problem.stack);
  process.exit(1);
});
