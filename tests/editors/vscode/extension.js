// Drives the extension for VS Code as a person would, in the real workbench: from installing the
// package to every surface it has.
//
// Usage: node extension.js EDITORS VSIX     in the workspace of tests/editors/run, with ../demo beside it
//
// Prints a line per check, and `done` at the end. Pictures of all surfaces are left in the folder of
// screens.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { Person, Workbench, checks, poll } = require("./workbench.js");

const [editors, vsix] = process.argv.slice(2).map((each) => path.resolve(each));
const workspace = process.cwd();
const demo = path.resolve("../demo");
const expected = JSON.parse(fs.readFileSync(process.env.PERFLENS_EXPECTED, "utf8"));
const source = fs.readFileSync("src/main.rs", "utf8").split("\n");
const check = checks("vscode extension");
// As look.md of the project has them: dark, light and the two of high contrast.
const THEMES = {
  "Dark Modern": ["rgb(117, 105, 58)", "rgb(168, 125, 48)", "rgb(221, 125, 60)", "rgb(255, 123, 114)"],
  "Light Modern": ["rgb(208, 178, 78)", "rgb(207, 132, 16)", "rgb(207, 86, 10)", "rgb(176, 16, 32)"],
  "Default High Contrast": ["rgb(143, 125, 58)", "rgb(201, 162, 39)", "rgb(255, 154, 60)", "rgb(255, 138, 128)"],
  "Default High Contrast Light": ["rgb(138, 109, 0)", "rgb(168, 98, 0)", "rgb(184, 67, 0)", "rgb(143, 0, 22)"],
};

// Of cpu.pb.gz, compared with after.pb.gz: totals differ by a third, so shares are what counts; of 200 samples
// not all that is within chance is known to be no change.
const CHANGES = {
  5: "≈ −2.5pp 10.0%→7.5%",
  6: "≈ +3.3pp inconclusive",
  7: "≈ −0.2pp 0.7%→0.5%",
  13: "≈ −3.3pp 13.3%→10.0%",
  14: "▲ +16.7pp 33.3%→50.0%",
  15: "≈ −10.0pp inconclusive",
  22: "▲ +20.0pp 20.0%→40.0%",
};

const bench = new Workbench(editors, path.resolve("../vscode-extension"));

async function becomes(name, wanted, probe) {
  const equal = (got) => JSON.stringify(got) === JSON.stringify(wanted);
  const got = await poll(probe, equal);
  return check(name, equal(got), { wanted, got });
}

async function shows(name, probe, ...wanted) {
  const has = (got) => wanted.every((each) => (each instanceof RegExp ? each.test(got) : got.includes(each)));
  const got = await poll(probe, has);
  return check(name, has(got), { wanted: wanted.map(String), got });
}

const status = (person) => person.text(".statusbar");
const rows = (person) => person.text(".pane-body .monaco-list-row");
const hints = (person) => person.hints(source, Object.keys(expected.before));

// {line: colour} of the bars that are on the screen.
function bars(person) {
  return person.page.evaluate(() => {
    const found = {};
    for (const bar of document.querySelectorAll(".view-overlays .cdr")) {
      const look = getComputedStyle(bar);
      if (look.borderLeftWidth !== "3px") continue;
      const numbers = [...document.querySelectorAll(".margin-view-overlays .line-numbers")];
      const middle = (each) => each.getBoundingClientRect().top + each.getBoundingClientRect().height / 2;
      const line = numbers.find((each) => Math.abs(middle(each) - middle(bar)) < 6)?.textContent;
      if (line !== undefined) found[line.trim()] = look.borderLeftColor;
    }
    return found;
  });
}

// The page inside of a webview.
const webview = (person) => person.page.frameLocator("iframe.webview.ready").last().frameLocator("iframe");

async function firstRun(person) {
  await person.open(bench, workspace, "src/main.rs");
  await shows("without a profile the status bar says so", () => status(person), "no profile");
  await person.page.waitForTimeout(1000);
  check("the first run asks for nothing", (await person.text(".notifications-toasts")) === "", await person.text(".notifications-toasts"));
  await person.palette("perflens: First steps");
  await shows("first steps", () => person.text(".gettingStartedContainer"), "See what your code costs", "Open the demo");
  await person.picture("extension-first-steps");
  await person.press("Control+w");
  await person.page.locator(".activitybar [aria-label^='perflens']").first().click();
  await shows("an empty list offers what to do", () => person.text(".pane-body .welcome-view"), "Open a profile", "Open the demo");
  await person.picture("extension-empty");
}

async function openByKeyboard(person) {
  await person.press("Control+1");
  await person.palette("perflens: Open a profile");
  await shows("profiles of the workspace are offered", () => person.text(".quick-input-list"), "cpu.pb.gz", "Browse");
  await person.picture("extension-profiles");
  await person.type("cpu.pb");
  await person.press("Enter");
  await becomes("hints", expected.before, () => hints(person));
  await becomes("lenses", Object.values(expected.lenses), () => person.lenses());
  await shows("two facts in the status bar", () => status(person), "cpu · 2.00s");
  const [, , warm, hot] = THEMES["Dark Modern"];
  await becomes("a bar for each hot line", { 5: THEMES["Dark Modern"][1], 6: hot, 13: warm, 14: hot, 15: hot, 22: hot }, () => bars(person));
  await person.picture("extension-lit");
}

async function lists(person) {
  await person.palette("perflens: Show hot spots");
  await shows("hot spots by what lines cause", () => rows(person), /40\.0% +words::measure[\s\S]*30\.0% +words::group[\s\S]*10\.0%/);
  await shows("and what no line of the workspace causes", () => rows(person), "Elsewhere");
  await person.picture("extension-hotspots");
  // By keyboard: the first row, its callers, and there.
  await person.press("ArrowDown", "ArrowRight");
  await shows("a hot spot has its callers and callees", () => rows(person), /40\.0%\s+800ms\s+words::group/, /35\.0%\s+700ms\s+.*count/);
  await person.picture("extension-callers");
  await person.press("Enter");
  await shows("Enter goes there", () => status(person), "Ln 22,");
  await person.press("Control+1");
  await person.goTo(1);
  await person.press("Alt+F9");
  await shows("a key goes to a hot spot", () => status(person), /Ln (22|15),/);
  const first = /Ln (\d+),/.exec(await status(person))[1];
  await person.press("Alt+F9");
  await shows("and to the next", () => status(person), new RegExp(`Ln (?!${first},)(13|14|15|22),`));
  await person.press("Shift+Alt+F9");
  await shows("and back", () => status(person), `Ln ${first},`);
  await person.palette("View: Show Explorer");
  const label = person.page.locator(".explorer-folders-view .monaco-list-row[aria-label*='main.rs'] .monaco-icon-label").first();
  await becomes("the explorer says what percentage a file causes", '"98"', () => label.evaluate((each) => getComputedStyle(each, "::after").content).catch(() => ""));
}

async function details(person) {
  let got = await person.hover("measure");
  check("hover", /50\.0%/.test(got) && /with calls/.test(got), got);
  check("with links", got.includes("Callers") && got.includes("Flame graph"), got);
  await person.picture("extension-hover");
  await person.page.locator(".monaco-hover:not(.hidden) a", { hasText: "Callers" }).last().click();
  await shows("a link lists callers and callees", () => person.text(".quick-input-list"), "words::main", "words::measure");
  await person.picture("extension-link");
  await person.press("Escape");
  await person.page.mouse.move(5, 5);
  await person.page.locator(".codelens-decoration a", { hasText: "90.0%" }).click();
  await shows("a lens offers what can be done", () => person.text(".quick-input-list"), "Callers and callees of this function", "All hot spots");
  await person.picture("extension-actions");
  await person.press("Escape");
  await person.palette("perflens: Explain what is shown");
  await shows("an explanation is a text", async () => (await person.lines()).join("\n"), "2.00s cpu");
  await person.picture("extension-explain");
  await person.press("Control+w");
}

async function presets(person) {
  await person.palette("perflens: Select a preset");
  await shows("presets that the profile can answer are offered", () => person.text(".quick-input-list"), /cpu/i);
  await person.picture("extension-presets");
  await person.press("Escape");
}

async function assistant(person) {
  await person.goTo(14);
  await person.palette("perflens: Copy for an assistant");
  await person.picture("extension-copy");
  await person.pick("This function");
  const clipboard = () => person.page.evaluate(() => navigator.clipboard.readText());
  await shows("costs are copied for an assistant", clipboard, "src/main.rs", /14 │ +let length = measure/, "50.0%", "words::measure", "What makes the hot lines slow");
  check("without the folder of the workspace", !(await clipboard()).includes(workspace), await clipboard());
  await person.goTo(13);
  await person.press("Shift+ArrowDown", "Shift+ArrowDown");
  await person.palette("perflens: Copy for an assistant");
  await person.pick("The selected lines");
  await shows("and those of a selection", clipboard, "`src/main.rs`, lines 13 to 14, costs in the margin", /13 │/, /14 │/);
  check("without other lines", !/15 │/.test(await clipboard()), await clipboard());
  await person.palette("perflens: Open a text for an assistant");
  await person.pick("The whole workspace");
  await shows("or opened as a document", async () => (await person.lines()).join("\n"), "**cpu.pb.gz** · `cpu` **2.00s**", "Lines by cost here");
  await shows("with a name of its own", () => person.text(".tabs-container"), /Costs-1\s*\.md/);
  await person.picture("extension-text");
  await person.press("Control+w");
  await person.page.locator(".monaco-dialog-box .monaco-button", { hasText: "Don't Save" }).click({ timeout: 20_000 });
}

async function modes(person) {
  await person.open(bench, workspace, "src/main.rs");
  const line4 = async () => (await person.lines()).find((line) => line.includes("fn main()")) ?? "";
  await becomes("what was open is open again in a new window", expected.before, () => hints(person));
  const isBlock = ([, label]) => /^[▄▆█]/.test(label);
  const hot = Object.fromEntries(Object.entries(expected.before).map((each) => (isBlock(each) ? each : [each[0], ""])));
  const none = Object.fromEntries(Object.keys(expected.before).map((line) => [line, ""]));
  const mode = async (title) => {
    await person.palette("perflens: Toggle hints");
    await person.pick(title);
  };
  await mode("Hot lines");
  await becomes("hot lines only", hot, () => hints(person));
  await mode("The cursor's line");
  await person.goTo(14);
  await becomes("the cursor's line only", { ...none, 14: expected.before[14] }, () => hints(person));
  await person.press("ArrowDown");
  await becomes("it follows the cursor", { ...none, 15: expected.before[15] }, () => hints(person));
  await mode("None");
  await becomes("none", none, () => hints(person));
  await shows("hints of others stay", line4, "«other»");
  check("and so do bars", Object.keys(await bars(person)).length === 6, await bars(person));
  await person.picture("extension-off");
  await mode("All lines");
  await becomes("all again", expected.before, () => hints(person));
}

async function column(person) {
  bench.settings({ "workbench.colorTheme": "Dark Modern", "perflens.placement": "column", "perflens.heat.background": true });
  await person.open(bench, workspace, "src/main.rs");
  const cells = () =>
    person.page.evaluate(() =>
      [...document.querySelectorAll(".view-line")]
        .map((line) => ({ top: parseFloat(line.style.top), cell: [...line.querySelectorAll("span")].map((span) => getComputedStyle(span, "::before").content).find((text) => text.length > 6) }))
        .sort((a, b) => a.top - b.top)
        .map(({ cell }) => (cell ?? "").replaceAll('"', "").replaceAll("\u00a0", " ").trim())
        .filter((cell) => cell !== ""),
    );
  await becomes("a column before the code", ["▄  7.5%   150ms", "█ 90.0%   1.80s", "0.5%  10.0ms", "▆ 10.0%   200ms", "█ 50.0%   1.00s", "█ 30.0%   600ms", "█ 40.0%   800ms"], cells);
  await becomes("and none behind it", Object.fromEntries(Object.keys(expected.before).map((line) => [line, ""])), () => hints(person));
  await person.picture("extension-column");
  await person.palette("perflens: Toggle costs in a column");
  await becomes("a command puts them back", expected.before, () => hints(person));
  bench.settings({ "workbench.colorTheme": "Dark Modern", "perflens.placement": "column", "editor.wordWrap": "on" });
  await person.open(bench, workspace, "src/main.rs");
  await becomes("wrapped lines have them at their end", expected.before, () => hints(person));
  bench.settings({ "workbench.colorTheme": "Dark Modern" });
}

async function flamegraph(person) {
  await person.goTo(22);
  await person.palette("perflens: Show the flame graph");
  const graph = webview(person);
  const boxes = async () => (await graph.locator(".box").allInnerTexts()).join("\n");
  await shows("a flame graph", boxes, "words::main", "words::group", "words::measure");
  await shows("that says what it is of", () => graph.locator(".title").innerText(), "2.00s cpu");
  await shows("it follows the cursor", async () => (await graph.locator(".box.cursor").allInnerTexts()).join(), "words::measure");
  await person.picture("extension-flamegraph");
  await graph.locator(".box", { hasText: "words::group" }).first().click();
  await shows("a click zooms", () => graph.locator(".details").innerText(), "words::group", "90.0% 1.80s", "src/main.rs:11");
  const width = await graph.locator(".box", { hasText: "words::group" }).first().evaluate((box) => box.style.width);
  check("to the whole width", width === "100%", width);
  await person.picture("extension-flamegraph-zoomed");
  await graph.locator(".search").fill("measure");
  await shows("search says how much was found", () => graph.locator(".bar .found").innerText(), "40.0% found");
  await person.picture("extension-flamegraph-search");
  await graph.locator(".search").press("Enter");
  await graph.locator(".boxes").press("ArrowDown");
  await shows("arrows walk", () => graph.locator(".details").innerText(), "words::measure");
  await graph.locator(".boxes").press("o");
  await shows("a key leads to the source", () => status(person), "Ln 21,");
  const policy = await graph.locator("meta[http-equiv]").getAttribute("content");
  check("the page may run one script", /^default-src 'none'; style-src \S+(?: \S+)*; script-src 'nonce-[^']{20,}'$/.test(policy), policy);
  await person.palette("View: Close All Editors");
}

async function compare(person) {
  await person.open(bench, workspace, "src/main.rs");
  await becomes("lit before comparing", expected.before, () => hints(person));
  await person.palette("perflens: Compare with another profile");
  await person.pick("A profile");
  await person.pick("after.pb.gz");
  await shows("a comparison in the status bar", () => status(person), "vs after.pb.gz");
  await becomes("lines say what changed", CHANGES, () => hints(person));
  await shows("and so do lenses", async () => (await person.lenses()).join("\n"), /function ▲ \+\d/);
  await person.palette("perflens: Show hot spots");
  await shows("and the list", () => rows(person), /▲ \+20\.0pp/, /≈ −10\.0pp/);
  await person.picture("extension-compare");
  await person.palette("perflens: Show the flame graph");
  const graph = webview(person);
  const changed = (kind) => graph.locator(`.box.${kind}`).allInnerTexts().then((texts) => texts.join("\n"));
  await shows("the flame graph has boxes that became more", () => changed("heat4"), "▲ words::measure");
  await shows("and those that may be as they were, each with its sign", () => changed("same"), "≈ words::group");
  await graph.locator(".box", { hasText: "measure" }).first().hover();
  await shows("and says by how much", () => graph.locator(".details").innerText(), /▲ \+\d+\.\dpp/);
  await person.picture("extension-compare-flamegraph");
  await person.press("Control+1");
  await person.palette("View: Close Editors in Other Groups");
  await person.page.locator(".statusbar-item", { hasText: "vs after" }).click();
  await shows("the status bar has a menu", () => person.text(".quick-input-list"), "Stop comparing", "Flame graph");
  await person.picture("extension-menu");
  await person.pick("Stop comparing");
  await becomes("as before", expected.before, () => hints(person));
}

async function profileFile(person) {
  await person.palette("View: Show Explorer");
  await person.page.locator(".explorer-folders-view .monaco-list-row[aria-label^='after.pb.gz']").click();
  const page = webview(person);
  await shows("opening a profile's file shows what is in it", () => page.locator("pre").innerText(), "1.50s", "words::measure");
  await person.picture("extension-profile");
  await page.locator("button", { hasText: "Show its costs" }).click();
  await shows("and offers to show that in the code", () => status(person), "cpu · 1.50s");
  await person.tab("main.rs");
  await person.page.locator('.tab[data-resource-name="main.rs"]').click();
  await becomes("which it does", expected.after, () => hints(person));
}

async function themes(person) {
  for (const [theme, [, warm]] of Object.entries(THEMES)) {
    bench.settings({ "workbench.colorTheme": theme });
    await person.open(bench, demo, "logstats.go");
    if ((await poll(() => status(person), (got) => got.includes("no profile") || got.includes("8.40s"))).includes("no profile")) {
      await person.palette("perflens: Open a profile");
      await person.pick("cpu.pb.gz");
    }
    await poll(() => person.lenses(), (all) => all.length > 1);
    const colours = await poll(async () => Object.values(await bars(person)), (all) => all.length > 5 && all.includes(warm));
    check(`${theme}: colours of heat`, colours.length > 5 && colours.every((each) => THEMES[theme].includes(each)), colours);
    await person.palette("perflens: Show hot spots");
    await poll(() => rows(person), (got) => got.includes("logstats.parse"));
    await person.palette("perflens: Show the flame graph");
    await poll(() => webview(person).locator(".box").count(), (count) => count > 20);
    await person.page.mouse.move(5, 5);
    await person.picture(`extension-${theme.toLowerCase().replaceAll(" ", "-")}`);
    await person.palette("View: Close All Editors");
  }
}

async function links(person) {
  const follow = async (query) => {
    await person.palette("Developer: Open URL");
    await person.page.waitForSelector(".quick-input-widget:visible");
    await person.type(`code-oss://perflens.perflens/show?${query}`);
    await person.press("Enter");
    // The editor's own question comes first.
    await person.page.locator(".monaco-dialog-box .monaco-button", { hasText: "Open" }).click();
  };
  await follow("file=src/main.rs&line=13");
  await shows("a link is confirmed", () => person.text(".monaco-dialog-box"), "src/main.rs, line 13");
  await person.picture("extension-url");
  await person.page.locator(".monaco-dialog-box .monaco-button", { hasText: "Follow" }).click();
  await shows("and followed", () => status(person), "Ln 13,");
  await follow("profile=../../etc/passwd");
  await shows("one that leads out is not", () => person.text(".notifications-toasts"), "leads out of the workspace");
}

async function demoFromNothing(person) {
  await person.page.goto(bench.address(undefined, []) + "&ew=true");
  await person.page.waitForSelector(".monaco-workbench");
  await poll(() => status(person), (got) => got.includes("no profile"));
  await person.palette("perflens: Open the demo");
  await person.tab("logstats.go");
  await shows("one command, and the demo is lit", async () => (await person.lines()).join("\n"), "50.6% 4.25s here");
  await person.picture("extension-demo");
}

// What VS Code itself shows of tools for assistants, with what it has for assistants switched on.
async function toolServers(person) {
  bench.settings({ "workbench.colorTheme": "Dark Modern", "chat.disableAIFeatures": false });
  await person.open(bench, workspace, "src/main.rs");
  await poll(() => status(person), (got) => got.includes("cpu"));
  await person.palette("MCP: List Servers");
  await shows("VS Code lists our server of tools", () => person.text(".quick-input-list"), "perflens");
  await person.picture("extension-mcp");
  await person.press("Escape");
  await person.palette("perflens: Ask the chat about costs");
  await person.pick("The whole workspace");
  await shows("the chat is asked with the text, which nobody has sent yet", () => person.text(".chat-input-container, .interactive-input-part"), "2.00s");
  await person.picture("extension-chat");
  bench.settings({ "workbench.colorTheme": "Dark Modern" });
}

// A workspace that nobody trusts yet, in an editor that asks.
async function trust(context) {
  await bench.stop();
  bench.settings({ "workbench.colorTheme": "Dark Modern", "security.workspace.trust.startupPrompt": "never" });
  bench.settings({}, "Machine");
  fs.writeFileSync(path.join(demo, "perflens.toml"), '[source]\nfile = "cpu.pb.gz"\n');
  await bench.serve();
  const person = new Person(await context());
  await person.open(bench, demo, "logstats.go");
  await shows("in a workspace without trust", () => status(person), "no profile");
  await person.page.waitForTimeout(2000);
  check("its perflens.toml opens nothing", (await status(person)).includes("no profile"), await status(person));
  await person.palette("perflens: Show the status");
  await shows("and that is said", async () => (await person.lines()).join("\n"), "ignored until this workspace is trusted: source.file");
  await person.picture("extension-untrusted");
  await person.palette("Workspaces: Manage Workspace Trust");
  await person.page.locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust/ }).first().click({ timeout: 20_000 });
  await shows("trust in the editor is trust", () => status(person), "8.40s");
}

async function failure(person) {
  bench.settings({ "perflens.server.path": "/nowhere/perflens" }, "Machine");
  await person.open(bench, workspace, "src/main.rs");
  await shows("a server that is not there is told with the setting", () => person.text(".notifications-toasts"), "perflens.server.path", "/nowhere/perflens");
  await shows("and in the status bar", async () => (await person.page.locator(".statusbar-item[id*='perflens'] .codicon-error").count()).toString(), "1");
  await person.picture("extension-failure");
}

async function main() {
  fs.mkdirSync(process.env.PERFLENS_SCREENS, { recursive: true });
  bench.settings({ "workbench.colorTheme": "Dark Modern" });
  fs.cpSync(path.join(__dirname, "other"), path.join(bench.extensions, "perflens-tests.other-hints-0.0.0"), { recursive: true });
  const said = bench.install(vsix);
  check("the package installs", said.includes("successfully installed"), said);
  await bench.serve("--disable-workspace-trust");
  const newPage = async () => {
    const context = await bench.browser.newContext({ viewport: { width: 1280, height: 860 } });
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    return context.newPage();
  };
  const person = new Person(await newPage());
  try {
    for (const step of [firstRun, openByKeyboard, lists, details, presets, assistant, modes, column, flamegraph, compare, profileFile, links, themes, demoFromNothing, toolServers, failure]) {
      await step(person);
    }
    await trust(newPage);
    console.log("done");
  } catch (problem) {
    await person.picture("extension-broken").catch(() => {});
    check("the script", false, problem.stack);
  } finally {
    await bench.stop();
  }
}

main().catch((problem) => {
  check("the script", false, problem.stack);
  process.exit(1);
});
