// VS Code's workbench, as code-server serves it to a browser: starting it, and what a person does in
// it. Shared by the tests of this folder.
"use strict";
const { execFileSync, spawn } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const PATIENCE = 60_000;
// What the workbench shows beside the code by itself would be in the way of what is looked for.
const QUIET = {
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.tips.enabled": false,
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
  "chat.disableAIFeatures": true,
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "git.enabled": false,
  "telemetry.telemetryLevel": "off",
  "editor.minimap.enabled": false,
  "editor.scrollBeyondLastLine": false,
  "editor.occurrencesHighlight": "off",
  "editor.unicodeHighlight.ambiguousCharacters": false,
  "files.autoSave": "off",
};

// One line for each thing that was looked at.
function checks(prefix) {
  return (name, ok, detail) => {
    const after = ok ? "" : `: ${JSON.stringify(detail)}`;
    console.log(`${ok ? "ok" : "FAILED"} ${prefix}: ${name}${after}`);
    return ok;
  };
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

// A workbench with folders of its own below `scratch`.
class Workbench {
  constructor(editors, scratch) {
    this.codeServer = path.join(editors, "code-server/node_modules/code-server");
    this.playwright = path.join(editors, "client/node_modules/playwright-core");
    this.scratch = scratch;
    this.extensions = path.join(scratch, "extensions");
    fs.mkdirSync(this.extensions, { recursive: true });
  }

  // Settings of the user, or with "Machine" of the machine, on top of the quiet ones.
  settings(settings, kind = "User") {
    const file = path.join(this.scratch, "user", kind, "settings.json");
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, JSON.stringify(kind === "User" ? { ...QUIET, ...settings } : settings, null, 2));
  }

  arguments() {
    return ["--user-data-dir", path.join(this.scratch, "user"), "--extensions-dir", this.extensions];
  }

  install(vsix) {
    const entry = path.join(this.codeServer, "out/node/entry.js");
    return execFileSync(process.execPath, [entry, ...this.arguments(), "--install-extension", vsix], { encoding: "utf8" });
  }

  // Starts code-server on a free port.
  async serve(...more) {
    const entry = path.join(this.codeServer, "out/node/entry.js");
    const options = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"];
    await this.start([entry, ...options, ...more, ...this.arguments()], /listening on http:\/\/127\.0\.0\.1:(\d+)/);
  }

  // Starts the server inside of it, which runs tests in the extension host.
  async serveTests() {
    const entry = path.join(this.codeServer, "lib/vscode/out/server-main.js");
    const options = [
      ...["--host", "127.0.0.1", "--port", "0", "--without-connection-token", "--accept-server-license-terms"],
      ...["--telemetry-level", "off", "--enable-smoke-test-driver", "--server-data-dir", path.join(this.scratch, "data")],
    ];
    await this.start([entry, ...options, ...this.arguments()], /listening on (?:127\.0\.0\.1:)?(\d+)/);
  }

  async start(command, announcement) {
    const server = spawn(process.execPath, command);
    this.server = server;
    this.port = await new Promise((resolve, reject) => {
      let said = "";
      const listen = (chunk) => {
        said += chunk;
        const port = announcement.exec(said)?.[1];
        if (port) resolve(port);
      };
      server.stdout.on("data", listen);
      server.stderr.on("data", listen);
      server.on("exit", (code) => reject(new Error(`it ended with ${code}: ${said}`)));
      setTimeout(() => reject(new Error(`it doesn't listen: ${said}`)), PATIENCE).unref();
    });
    const { chromium } = require(this.playwright);
    this.browser = await chromium.launch({
      executablePath: "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    });
  }

  async stop() {
    await this.browser?.close();
    this.server?.removeAllListeners("exit");
    this.server?.kill();
  }

  uri(file) {
    return `vscode-remote://127.0.0.1:${this.port}${file}`;
  }

  address(folder, payload) {
    const where = folder === undefined ? "" : `folder=${folder}&`;
    return `http://127.0.0.1:${this.port}/?${where}payload=${encodeURIComponent(JSON.stringify(payload))}`;
  }
}

// What a person does in a page, and what they see there.
class Person {
  constructor(page) {
    this.page = page;
  }

  async open(workbench, folder, file) {
    const payload = file === undefined ? [] : [["openFile", workbench.uri(path.join(folder, file))]];
    await this.page.goto(workbench.address(folder, payload));
    await this.page.waitForSelector(".monaco-workbench", { timeout: PATIENCE });
    if (file !== undefined) await this.tab(path.basename(file));
  }

  async tab(name) {
    await this.page.waitForSelector(`.tab[data-resource-name="${name}"]`, { timeout: PATIENCE });
  }

  press(...keys) {
    return keys.reduce((before, key) => before.then(() => this.page.keyboard.press(key)), Promise.resolve());
  }

  type(text) {
    return this.page.keyboard.type(text);
  }

  async text(selector) {
    const all = await this.page.locator(selector).allInnerTexts();
    return all.join("\n").replaceAll("\u00a0", " ").replaceAll("\u2007", " ");
  }

  // What a person reads in the editor, from top to bottom; VS Code uses no-break spaces.
  async lines() {
    const lines = await this.page.locator(".view-lines .view-line").evaluateAll((all) =>
      all.map((line) => ({ top: parseFloat(line.style.top), text: line.textContent })).sort((a, b) => a.top - b.top),
    );
    return lines.map((line) => line.text.replaceAll("\u00a0", " ").replaceAll(/[\u200b-\u200f\ufeff]/g, ""));
  }

  // {line number: what stands behind its code}, for these lines of a source.
  async hints(source, numbers) {
    const lines = await this.lines();
    const found = {};
    for (const number of numbers) {
      const code = source[number - 1].trim();
      const line = lines.find((each) => each.includes(code));
      if (line !== undefined) found[number] = line.split(code)[1].trim();
    }
    return found;
  }

  async lenses() {
    const all = await this.page.locator(".codelens-decoration").evaluateAll((all) =>
      all
        .map((each) => ({ top: each.getBoundingClientRect().top, text: each.textContent }))
        .sort((a, b) => a.top - b.top)
        .map((each) => each.text),
    );
    return all.map((each) => each.replaceAll("\u00a0", " ")).filter((each) => each !== "");
  }

  async goTo(line, column = 1) {
    await this.press("Control+g");
    await this.page.waitForSelector(".quick-input-widget:visible", { timeout: PATIENCE });
    await this.type(`${line}:${column}`);
    await this.press("Enter");
    await this.page.waitForSelector(".quick-input-widget", { state: "hidden", timeout: PATIENCE });
  }

  async palette(title) {
    await this.press("F1");
    await this.page.waitForSelector(".quick-input-widget:visible", { timeout: PATIENCE });
    await this.type(title);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().waitFor({ timeout: PATIENCE });
    await this.press("Enter");
  }

  // Takes an entry of a list that is shown.
  async pick(label) {
    await this.page.waitForSelector(".quick-input-widget:visible", { timeout: PATIENCE });
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: label }).first().click({ timeout: PATIENCE });
  }

  // Where a piece of code is on the screen.
  async place(code) {
    return this.page.locator(".view-line", { hasText: code }).first().evaluate((line, code) => {
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

  async hover(code) {
    const { x, y } = await this.place(code);
    await this.page.mouse.move(x, y - 2);
    await this.page.mouse.move(x, y, { steps: 4 });
    return poll(() => this.text(".monaco-hover:not(.hidden)"), (got) => got.includes("%"), 20_000);
  }

  picture(name) {
    return this.page.screenshot({ animations: "disabled", path: path.join(process.env.PERFLENS_SCREENS, `vscode-${name}.png`) });
  }
}

module.exports = { PATIENCE, Person, Workbench, checks, poll };
