// Starts the tests of host/ in an extension host, and tells what came out.
//
// Usage: node host.js EDITORS EXTENSION     in the workspace of tests/editors/run
//
// EXTENSION is the folder of the built extension, EDITORS where tests/editors/install put things.
// Prints a line per test, and `done` at the end.
"use strict";
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { Workbench, checks, poll } = require("./workbench.js");

const [editors, extension] = process.argv.slice(2).map((each) => path.resolve(each));
const check = checks("vscode host");
const scratch = path.resolve("../vscode-host");
const result = path.join(scratch, "result.json");
const read = () => (fs.existsSync(result) ? fs.readFileSync(result, "utf8") : "[]");

async function main() {
  const bench = new Workbench(editors, scratch);
  bench.settings({ "security.workspace.trust.enabled": false });
  // Of the machine, for a server that came with nothing: both places where it may look.
  const machine = { "perflens.server.path": execFileSync("sh", ["-c", "command -v perflens"], { encoding: "utf8" }).trim() };
  for (const place of ["user/Machine", "data/data/Machine"]) {
    fs.mkdirSync(path.join(scratch, place), { recursive: true });
    fs.writeFileSync(path.join(scratch, place, "settings.json"), JSON.stringify(machine));
  }
  process.env.PERFLENS_RESULT = result;
  await bench.serveTests();
  const page = await bench.browser.newPage();
  const payload = [
    ["extensionDevelopmentPath", bench.uri(extension)],
    ["extensionTestsPath", bench.uri(path.join(__dirname, "host/index.js"))],
  ];
  await page.goto(bench.address(process.cwd(), payload));
  const isDone = (text) => text.includes('"done"');
  const text = await poll(async () => read(), isDone, 150_000);
  for (const { name, problem } of JSON.parse(text)) {
    if (name !== "done") check(name, problem === undefined, problem);
  }
  if (isDone(text)) console.log("done");
  await bench.stop();
}

main().catch((problem) => {
  check("the script", false, problem.stack);
  process.exit(1);
});
