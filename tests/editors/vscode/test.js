// Drives VS Code's workbench, as code-server serves it to a browser, on the workspaces of tests/editors/run.
//
// Usage: node test.js EDITORS CLIENT     in the workspace, with ../demo beside it
//
// EDITORS is where tests/editors/install put things, CLIENT the extension to try. Prints a line per
// check, and `done` at the end.
"use strict";
const { execFileSync, spawn } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const [editors, clientSource] = process.argv.slice(2).map((each) => path.resolve(each));
const { chromium } = require(path.join(editors, "client/node_modules/playwright-core"));
const workspace = process.cwd();
const scratch = path.resolve("../vscode");
const screens = process.env.PERFLENS_SCREENS;
const expected = JSON.parse(fs.readFileSync(process.env.PERFLENS_EXPECTED, "utf8"));
const source = fs.readFileSync("src/main.rs", "utf8").split("\n");
const PATIENCE = 45_000;

function check(name, ok, detail) {
  const after = ok ? "" : `: ${JSON.stringify(detail)}`;
  console.log(`${ok ? "ok" : "FAILED"} vscode: ${name}${after}`);
  return ok;
}

// Polls until `probe()` gives what `accept` accepts; returns the last thing it gave.
async function poll(probe, accept, patience = PATIENCE) {
  const deadline = Date.now() + patience;
  for (;;) {
    const got = await probe();
    if (accept(got) || Date.now() > deadline) return got;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function becomes(name, wanted, probe) {
  const equal = (got) => JSON.stringify(got) === JSON.stringify(wanted);
  const got = await poll(probe, equal);
  return check(name, equal(got), { wanted, got });
}

function writeSettings(theme) {
  const settings = {
    "workbench.colorTheme": theme,
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.tips.enabled": false,
    "chat.disableAIFeatures": true,
    "extensions.autoUpdate": false,
    "extensions.autoCheckUpdates": false,
    "extensions.ignoreRecommendations": true,
    "security.workspace.trust.enabled": false,
    "git.enabled": false,
    "telemetry.telemetryLevel": "off",
    // What follows makes the screen easier to read; what perflens shows is left as it comes.
    "editor.minimap.enabled": false,
    "editor.scrollBeyondLastLine": false,
    "editor.occurrencesHighlight": "off",
    "editor.unicodeHighlight.ambiguousCharacters": false,
    "files.autoSave": "off",
  };
  write("User", settings);
}

// Which program to start is a setting of the machine, never of a workspace.
function writeMachineSettings() {
  write("Machine", {
    // The PATH of extensions is that of a login shell, not ours.
    "perflensClient.program": execFileSync("sh", ["-c", "command -v perflens"], { encoding: "utf8" }).trim(),
    "perflens.source.file": "cpu.pb.gz",
  });
}

function write(kind, settings) {
  const file = path.join(scratch, "user", kind, "settings.json");
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, JSON.stringify(settings, null, 2));
}

// The extension with its library, where code-server looks for installed ones.
function installClient() {
  const to = path.join(scratch, "extensions/perflens.perflens-generic-client-0.0.0");
  fs.cpSync(clientSource, to, { recursive: true });
  fs.symlinkSync(path.join(editors, "client/node_modules"), path.join(to, "node_modules"));
}

// Starts code-server on a free port; resolves to it once it listens.
function serve() {
  const entry = path.join(editors, "code-server/node_modules/code-server/out/node/entry.js");
  const server = spawn(process.execPath, [
    entry,
    ...["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"],
    ...["--disable-workspace-trust", "--user-data-dir", path.join(scratch, "user")],
    ...["--extensions-dir", path.join(scratch, "extensions")],
  ]);
  return new Promise((resolve, reject) => {
    let said = "";
    const listen = (chunk) => {
      said += chunk;
      const port = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
      if (port) resolve({ server, port });
    };
    server.stdout.on("data", listen);
    server.stderr.on("data", listen);
    server.on("exit", (code) => reject(new Error(`code-server ended with ${code}: ${said}`)));
    setTimeout(() => reject(new Error(`code-server doesn't listen: ${said}`)), PATIENCE).unref();
  });
}

// What a person reads in the editor, from top to bottom; VS Code uses no-break spaces.
async function editorLines(page) {
  const lines = await page.locator(".view-lines .view-line").evaluateAll((all) =>
    all.map((line) => ({ top: parseFloat(line.style.top), text: line.textContent })).sort((a, b) => a.top - b.top),
  );
  return lines.map((line) => line.text.replaceAll("\u00a0", " ").replaceAll(/[\u200b-\u200f\ufeff]/g, ""));
}

// {line number: what stands behind its code}, for the lines that cost something.
async function hints(page) {
  const lines = await editorLines(page);
  const found = {};
  for (const number of Object.keys(expected.before)) {
    const code = source[number - 1].trim();
    const line = lines.find((each) => each.includes(code));
    if (line !== undefined) found[number] = line.split(code)[1].trim();
  }
  return found;
}

async function lenses(page) {
  const all = await page.locator(".codelens-decoration").evaluateAll((all) =>
    all
      .map((each) => ({ top: each.getBoundingClientRect().top, text: each.textContent }))
      .sort((a, b) => a.top - b.top)
      .map((each) => each.text),
  );
  return all.map((each) => each.replaceAll("\u00a0", " ")).filter((each) => each !== "");
}

async function open(page, port, folder, file) {
  const uri = `vscode-remote://127.0.0.1:${port}${path.join(folder, file)}`;
  const payload = encodeURIComponent(JSON.stringify([["openFile", uri]]));
  await page.goto(`http://127.0.0.1:${port}/?folder=${folder}&payload=${payload}`);
  await page.waitForSelector(".monaco-workbench", { timeout: PATIENCE });
  await page.waitForSelector(`.tab[data-resource-name="${path.basename(file)}"]`, { timeout: PATIENCE });
}

async function goTo(page, line, column = 1) {
  await page.keyboard.press("Control+g");
  await page.waitForSelector(".quick-input-widget:visible", { timeout: PATIENCE });
  await page.keyboard.type(`${line}:${column}`);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".quick-input-widget", { state: "hidden", timeout: PATIENCE });
}

async function palette(page, title) {
  await page.keyboard.press("F1");
  await page.waitForSelector(".quick-input-widget:visible", { timeout: PATIENCE });
  await page.keyboard.type(title);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().waitFor({ timeout: PATIENCE });
  await page.keyboard.press("Enter");
}

const text = (page, selector) => page.locator(selector).allInnerTexts().then((all) => all.join("\n"));
const picture = (page, name) => page.screenshot({ animations: "disabled", path: path.join(screens, `vscode-${name}.png`) });

// Where a piece of code is on the screen.
async function place(page, code) {
  return page.locator(".view-line", { hasText: code }).first().evaluate((line, code) => {
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const at = node.data.replaceAll("\u00a0", " ").indexOf(code);
      if (at < 0) continue;
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      const box = range.getBoundingClientRect();
      return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    }
    throw new Error(`${code} is not on the screen`);
  }, code);
}

async function hover(page, code) {
  const { x, y } = await place(page, code);
  await page.mouse.move(x, y - 2);
  await page.mouse.move(x, y, { steps: 4 });
  return poll(() => text(page, ".monaco-hover:not(.hidden)"), (got) => got.includes("%"), 20_000);
}

async function drive(page, port) {
  await open(page, port, workspace, "src/main.rs");
  if (!(await becomes("hints", expected.before, () => hints(page)))) {
    throw new Error(`nothing to see: ${await text(page, ".notifications-toasts")}`);
  }
  await becomes("lenses", Object.values(expected.lenses), () => lenses(page));
  await picture(page, "dark");

  let got = await hover(page, "measure");
  check("hover", /50\.0%/.test(got) && /with calls/.test(got), got);
  await picture(page, "hover");
  await page.mouse.move(5, 5);
  got = await hover(page, "1.00s");
  check("hover over a hint", /50\.0%/.test(got), got);
  await picture(page, "hint-hover");
  await page.mouse.move(5, 5);

  await goTo(page, 14, 9);
  await page.keyboard.press("Control+.");
  got = await poll(() => text(page, ".action-widget"), (each) => each !== "");
  check("code actions", got !== "" && !/No code actions/i.test(got), got);
  await picture(page, "actions");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".action-widget", { state: "hidden", timeout: PATIENCE });
  got = await poll(() => text(page, ".notifications-toasts"), (each) => each.includes("words::main"), 10_000);
  check("the first shows the callers of the line", got.includes("words::main"), got);
  await picture(page, "callers");

  await palette(page, "perflens: Show status");
  got = await poll(() => text(page, ".notifications-toasts"), (each) => each.includes("2.00s"), 10_000);
  check("the answer of a command is to be seen", got.includes("2.00s"), got);
  await picture(page, "status");
  await palette(page, "perflens: Next hot spot");
  got = await poll(() => text(page, ".statusbar"), (each) => each.includes("Ln 22,"), 10_000);
  check("the next hot spot is the hottest line", got.includes("Ln 22,"), got);
  await palette(page, "Notifications: Clear All Notifications");

  // Before, on and after lines with costs.
  await goTo(page, 9);
  await page.keyboard.type("// 🔥 above\n");
  await becomes("a line typed above leaves the hints with their lines", expected.before, () => hints(page));
  await goTo(page, 16);
  await page.keyboard.press("End");
  await page.keyboard.type(" // changed");
  await becomes("a changed line loses its hint", { ...expected.before, 15: "// changed" }, () => hints(page));
  await picture(page, "edited");
  await page.keyboard.press("Control+End");
  await page.keyboard.type("// last\n");
  await becomes("a line after everything changes nothing", { ...expected.before, 15: "// changed" }, () => hints(page));
  await palette(page, "File: Revert File");
  await becomes("the old text again, and they are back", expected.before, () => hints(page));

  const start = Date.now();
  fs.renameSync("after.pb.gz", "cpu.pb.gz");
  if (await becomes("the profile written again changes the hints", expected.after, () => hints(page))) {
    const ms = Date.now() - start;
    check(`within 5 s (${ms} ms)`, ms < 5000, ms);
  }
  await becomes("and the lenses", Object.values(expected["lenses after"]), () => lenses(page));

  // The same in a new window, in light colours; then something longer, in both.
  const demo = path.resolve("../demo");
  const demoLit = (lines) => lines.some((line) => line.includes("regexp.MustCompile") && line.includes("% "));
  writeSettings("Light Modern");
  await open(page, port, workspace, "src/main.rs");
  await becomes("hints in a new window", expected.after, () => hints(page));
  await poll(() => lenses(page), (all) => all.length > 0);
  await picture(page, "light");
  for (const theme of ["Light Modern", "Dark Modern"]) {
    writeSettings(theme);
    await open(page, port, demo, "logstats.go");
    const lines = await poll(() => editorLines(page), demoLit);
    check(`the demo is lit, ${theme}`, demoLit(lines), lines);
    await poll(() => lenses(page), (all) => all.length > 0);
    await picture(page, `demo-${theme.split(" ")[0].toLowerCase()}`);
  }

  const errors = await page.locator(".notifications-toasts .codicon-error").count();
  check("no error is shown", errors === 0, await text(page, ".notifications-toasts"));
}

async function main() {
  fs.mkdirSync(screens, { recursive: true });
  writeSettings("Dark Modern");
  writeMachineSettings();
  installClient();
  const { server, port } = await serve();
  const browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
  try {
    await drive(page, port);
    console.log("done");
  } catch (problem) {
    await picture(page, "broken").catch(() => {});
    check("the script", false, problem.stack);
  } finally {
    await browser.close();
    server.removeAllListeners("exit");
    server.kill();
  }
}

main().catch((problem) => {
  check("the script", false, problem.stack);
  process.exit(1);
});
