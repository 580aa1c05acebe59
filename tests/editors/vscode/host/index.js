// Runs in the extension host, with the real `vscode` API, on the workspace of tests/editors/run.
//
// The page that starts it can't see what comes out, so it is written to a file: a list of
// {name, problem}, and at the end of it all an entry `done`.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const vscode = require("vscode");

const ID = "perflens.perflens";
const root = vscode.workspace.workspaceFolders[0].uri;
const file = (name) => vscode.Uri.joinPath(root, name);
const main = file("src/main.rs");
const expected = JSON.parse(fs.readFileSync(process.env.PERFLENS_EXPECTED, "utf8"));
const ui = (name, ...args) => vscode.commands.executeCommand(`perflens.ui.${name}`, ...args);

async function until(what, probe, patience = 30_000) {
  const deadline = Date.now() + patience;
  for (;;) {
    const got = await probe();
    if (got) return got;
    assert.ok(Date.now() < deadline, `waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function hints() {
  const document = await vscode.workspace.openTextDocument(main);
  const range = new vscode.Range(0, 0, document.lineCount, 0);
  const all = (await vscode.commands.executeCommand("vscode.executeInlayHintProvider", main, range)) ?? [];
  return Object.fromEntries(all.map((hint) => [hint.position.line + 1, String(hint.label).trim()]));
}

const isLit = async (wanted) => until("lit lines", async () => JSON.stringify(await hints()) === JSON.stringify(wanted));

const TESTS = {
  async "it starts by itself and quickly"() {
    const extension = vscode.extensions.getExtension(ID);
    const start = Date.now();
    await extension.activate();
    report.push({ name: `activation took ${Date.now() - start} ms` });
  },
  async "what the manifest contributes is there, and nothing else"() {
    const { contributes } = vscode.extensions.getExtension(ID).packageJSON;
    const there = (await vscode.commands.getCommands(true)).filter((id) => id.startsWith("perflens.ui."));
    const contributed = contributes.commands.map(({ command }) => command);
    assert.deepEqual(there.sort(), contributed.sort());
    for (const { command } of contributes.commands) assert.equal(contributed.filter((each) => each === command).length, 1, command);
    for (const { command } of Object.values(contributes.menus).flat()) assert.ok(contributed.includes(command), command);
  },
  async "the server's own commands are not the extension's"() {
    const there = await until("the server", async () => {
      const all = await vscode.commands.getCommands(true);
      return all.includes("perflens.showStatus") && all;
    });
    assert.ok(there.includes("perflens.openProfile"));
  },
  async "settings of the machine are of the machine"() {
    const groups = vscode.extensions.getExtension(ID).packageJSON.contributes.configuration;
    const all = Object.assign({}, ...groups.map((group) => group.properties));
    for (const [name, { scope }] of Object.entries(all)) {
      const isMachine = /^perflens\.(source|auth|record|symbols|otlp|server)\./.test(name);
      assert.equal(scope === "machine", isMachine, name);
    }
  },
  async "a profile is opened by a command with arguments, which asks nothing"() {
    await vscode.window.showTextDocument(main);
    await ui("openProfile", { path: "cpu.pb.gz" });
    await isLit(expected.before);
  },
  async "lenses carry commands that exist"() {
    const lenses = await vscode.commands.executeCommand("vscode.executeCodeLensProvider", main, 10);
    assert.deepEqual(lenses.map((lens) => lens.command.title), Object.values(expected.lenses));
    const all = await vscode.commands.getCommands(true);
    for (const lens of lenses) assert.ok(all.includes(lens.command.command), lens.command.command);
  },
  async "hovers have links to a fixed list of commands, and no HTML"() {
    const [hover] = await vscode.commands.executeCommand("vscode.executeHoverProvider", main, new vscode.Position(13, 21));
    const [text] = hover.contents;
    assert.match(text.value, /50\.0%[\s\S]*\[Callers\]\(command:perflens\.ui\.showCallers\?/);
    assert.ok(!text.supportHtml);
    const { enabledCommands } = text.isTrusted;
    assert.ok(enabledCommands.length > 0 && enabledCommands.every((id) => id.startsWith("perflens.ui.")), String(enabledCommands));
    const linked = [...text.value.matchAll(/command:([\w.]+)/g)].map(([, id]) => id);
    assert.ok(linked.every((id) => enabledCommands.includes(id)), String(linked));
  },
  async "call hierarchies are of the profile"() {
    const [item] = await vscode.commands.executeCommand("vscode.prepareCallHierarchy", main, new vscode.Position(13, 21));
    assert.equal(item.name, "words::group");
    const incoming = await vscode.commands.executeCommand("vscode.provideIncomingCalls", item);
    assert.deepEqual(incoming.map(({ from }) => from.name), ["words::main"]);
    const outgoing = await vscode.commands.executeCommand("vscode.provideOutgoingCalls", item);
    assert.ok(outgoing.some(({ to }) => to.name === "words::measure"));
  },
  async "hot spots are gone through in the editor"() {
    await ui("nextHotspot");
    await until("the hottest line", () => vscode.window.activeTextEditor?.selection.active.line === 21);
    await ui("nextHotspot");
    await until("the next", () => vscode.window.activeTextEditor?.selection.active.line === 14);
    await ui("previousHotspot");
    await until("back", () => vscode.window.activeTextEditor?.selection.active.line === 21);
  },
  async "a setting that is not set leaves perflens.toml its say"() {
    fs.writeFileSync(file("perflens.toml").fsPath, "[hints]\nminShare = 5.0\n");
    const few = Object.fromEntries(Object.entries(expected.before).filter(([line]) => line !== "7"));
    await isLit(few);
    await vscode.workspace.getConfiguration("perflens").update("hints.minShare", 20, vscode.ConfigurationTarget.Global);
    await until("the editor's word", async () => Object.keys(await hints()).join() === "6,14,15,22");
    await vscode.workspace.getConfiguration("perflens").update("hints.minShare", undefined, vscode.ConfigurationTarget.Global);
    await isLit(few);
    fs.rmSync(file("perflens.toml").fsPath);
    await isLit(expected.before);
  },
  async "settings of the extension are not told to the server"() {
    await vscode.workspace.getConfiguration("perflens").update("heat.background", true, vscode.ConfigurationTarget.Global);
    await ui("restart");
    await ui("openProfile", { path: "cpu.pb.gz" });
    await isLit(expected.before);
    await ui("showStatus");
    const shown = await until("the status", () => vscode.window.visibleTextEditors.find(({ document }) => document.uri.scheme === "perflens-text"));
    assert.match(shown.document.getText(), /2\.00s/);
    assert.doesNotMatch(shown.document.getText(), /there is no setting/);
    await vscode.workspace.getConfiguration("perflens").update("heat.background", undefined, vscode.ConfigurationTarget.Global);
  },
  async "comparing and closing"() {
    await ui("compareWith", { path: "after.pb.gz" });
    await until("a comparison", async () => Object.values(await hints()).some((label) => label.startsWith("▲")));
    await ui("stopComparing");
    await isLit(expected.before);
    await ui("clear");
    await isLit({});
  },
};

const report = [];

exports.run = async () => {
  for (const [name, test] of Object.entries(TESTS)) {
    try {
      await test();
      report.push({ name });
    } catch (problem) {
      report.push({ name, problem: String(problem.stack) });
    }
    fs.writeFileSync(process.env.PERFLENS_RESULT, JSON.stringify(report));
  }
  report.push({ name: "done" });
  fs.writeFileSync(process.env.PERFLENS_RESULT, JSON.stringify(report));
};
