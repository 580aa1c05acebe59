// All commands, one table: what each does when a person runs it from palette, menu, lens or action.
//
// A command of the server that is not in the table asks for its arguments and is run. One that is
// has a dialog, or another way to show its answer, that an editor can do better than a server.

import path from "node:path";
import * as vscode from "vscode";
import type { Command } from "vscode-languageclient/node";
import { askFor, COMMANDS } from "./ask";
import type { Client } from "./client";
import * as dialogs from "./dialogs";
import type { Flamegraphs } from "./flamegraph";
import { MODES, type Hints, type Mode } from "./hints";
import type { HotspotTree } from "./hotspots";
import { openDemo } from "./demo";
import { isAddress, type Profiles } from "./profiles";
import * as protocol from "./protocol";
import type { Hotspot, Neighbour, Subject } from "./protocol";
import * as settings from "./settings";
import type { StatusBar } from "./status";
import type { Texts } from "./texts";

/** What commands work with. */
export interface Parts {
  extension: vscode.ExtensionContext;
  client: Client;
  hints: Hints;
  tree: HotspotTree;
  statusBar: StatusBar;
  flamegraphs: Flamegraphs;
  profiles: Profiles;
  texts: Texts;
}

/** What it was called with is somebody else's: a link, a key binding, the server. */
type Handler = (parts: Parts, args: Arguments) => unknown;
type Arguments = Readonly<Record<string, unknown>>;

type Table = Readonly<Record<string, Handler>>;

/** Commands of the server, with dialogs or surfaces of the editor. */
const OF_SERVER: Table = {
  openProfile,
  selectPreset,
  selectValueType,
  query: ({ client }, args) => dialogs.query(client, args),
  setTimeRange: ({ client }, args) => dialogs.setTimeRange(client, args),
  record: ({ client }, args) => dialogs.record(client, args),
  setFilter,
  compareWith,
  clear,
  nextHotspot: (parts) => go(parts, "nextHotspot"),
  previousHotspot: (parts) => go(parts, "previousHotspot"),
  showHotspots: () => vscode.commands.executeCommand("perflens.hotspots.focus"),
  showActions,
  showCallers,
  profileTest,
  profileInTurns,
  explain,
  showStatus,
  toggleHints,
  copyForAI,
};

/** Commands that only the extension has. */
const OWN: Table = {
  showMenu,
  openDemo: ({ extension }) => openDemo(extension),
  openThisProfile: (parts, { uri }) => (uri instanceof vscode.Uri ? open(parts, uri.fsPath) : undefined),
  compareWithThisProfile: (parts, { uri }) => (uri instanceof vscode.Uri ? parts.client.run("compareWith", { path: uri.fsPath }) : undefined),
  showFlamegraph: ({ flamegraphs }) => flamegraphs.show(),
  openForAI,
  askChat,
  listLines: ({ tree }) => tree.list("line"),
  listFunctions: ({ tree }) => tree.list("function"),
  togglePlacement: () => settings.change("placement", settings.own("placement") === "column" ? "endOfLine" : "column"),
  toggleTint: () => settings.change("heat.background", !settings.own<boolean>("heat.background")),
  openSettings: ({ extension }) => vscode.commands.executeCommand("workbench.action.openSettings", `@ext:${extension.extension.id}`),
  openWalkthrough: ({ extension }) => vscode.commands.executeCommand("workbench.action.openWalkthrough", `${extension.extension.id}#start`),
  showOutput: ({ client }) => client.output.show(),
  restart: ({ client }) => client.restart(),
};

/** The names of all commands, without prefix. */
const NAMES = [...Object.keys(OWN), ...COMMANDS.map(({ name }) => name)];

export function register(parts: Parts): vscode.Disposable[] {
  return NAMES.map((name) =>
    vscode.commands.registerCommand(`perflens.ui.${name}`, (first: unknown) => runByHand(parts, name, first)),
  );
}

/** Runs a command as if a person had called it. */
export async function runByHand(parts: Parts, name: string, first: unknown): Promise<unknown> {
  const args = first instanceof vscode.Uri ? { uri: first } : typeof first === "object" && first !== null ? { ...first } : {};
  const handler = OF_SERVER[name] ?? OWN[name];
  if (handler !== undefined) return handler(parts, args);
  const command = COMMANDS.find((each) => each.name === name);
  const given = command && (await askFor(command, args));
  return given && parts.client.run(name, given);
}

/** Whether a command of the server is shown in a way of ours. */
export function hasOwnWay(name: string): boolean {
  return name in OF_SERVER;
}

// ---- profiles

async function openProfile(parts: Parts, { path: file, type }: Arguments): Promise<void> {
  const picked = typeof file === "string" ? file : await parts.profiles.pick("Which profile?");
  if (picked !== undefined) await open(parts, picked, typeof type === "string" ? type : undefined);
}

export async function open({ client, profiles }: Parts, file: string, type?: string): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const where = folder === undefined || isAddress(file) ? file : path.resolve(folder, file);
  await client.run("openProfile", { path: where, ...(type !== undefined && { type }) });
  await profiles.remember({ path: where, type });
}

async function clear({ client, profiles }: Parts): Promise<void> {
  await client.run("clear");
  await profiles.remember(undefined);
}

/** What the server knows to compare with; `notOffered` with the reason. */
interface Bases {
  choices: { base: string; title: string; detail: string; profile: string }[];
  notOffered: { title: string; why: string }[];
}

async function compareWith({ client, profiles }: Parts, args: Arguments): Promise<void> {
  if (typeof args["path"] === "string") {
    await client.run("compareWith", args);
    return;
  }
  const offered = (await client.run("compareWith")) as Bases | undefined;
  if (offered === undefined) return;
  type Item = vscode.QuickPickItem & { path?: string; why?: string };
  const heading = (label: string): Item => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const found = offered.choices.map(({ base, title, detail, profile }): Item => ({ label: `$(history) ${sentence(title)}`, description: detail, detail: profile, path: base }));
  const missing = offered.notOffered.map(({ title, why }): Item => ({ label: `$(circle-slash) ${sentence(title)}`, description: why, why }));
  const file: Item = { label: "$(file) A profile…", description: "a file or an address" };
  const items = [...found, file, ...(missing.length > 0 ? [heading("can't be had"), ...missing] : [])];
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "Compare with what?", matchOnDescription: true });
  if (picked === undefined) return;
  if (picked.why !== undefined) {
    void vscode.window.showInformationMessage(`perflens: ${picked.why}.`);
    return;
  }
  const base = picked.path ?? (await profiles.pick("Compare with which profile?"));
  if (base !== undefined) await client.run("compareWith", { ...args, path: base });
}

async function selectPreset({ client }: Parts, { name }: Arguments): Promise<void> {
  if (typeof name === "string") {
    await client.run("selectPreset", { name });
    return;
  }
  const offered = (await client.run("selectPreset")) as { choices?: { name: string; title: string }[] } | undefined;
  if (offered?.choices === undefined) return;
  const items = offered.choices.map(({ name, title }) => ({ label: title, name }));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "Show what?" });
  if (picked !== undefined) await client.run("selectPreset", { name: picked.name });
}

async function selectValueType({ client, profiles, statusBar }: Parts, { type }: Arguments): Promise<void> {
  const picked = typeof type === "string" ? type : await pickValueType(statusBar);
  if (picked === undefined) return;
  await client.run("selectValueType", { type: picked });
  if (profiles.open !== undefined) await profiles.remember({ ...profiles.open, type: picked });
}

async function pickValueType(statusBar: StatusBar): Promise<string | undefined> {
  const status = await statusBar.fetch();
  const items = (status?.valueTypes ?? []).map((label) => ({
    label,
    description: label === status?.valueType ? "shown" : "",
  }));
  return (await vscode.window.showQuickPick(items, { placeHolder: "Count which value type?" }))?.label;
}

const FILTER_HELP = "FIELD OP VALUE, such as fn~parse, file^src/, label.route=/search, thread!=main";

/** What the server offers: `filters` are all that then apply. */
interface FilterChoices {
  choices: { kind: string; title: string; filters: string[] }[];
  applied: string[];
}

const KINDS: Readonly<Record<string, string>> = {
  service: "only one service",
  thread: "only one thread",
  label: "only one value of a label",
  executors: "frames",
  less: "filters that apply",
};

/** What the samples can be told apart by, each with what it leaves out; filters that apply can be taken back. */
async function setFilter({ client }: Parts, args: Arguments): Promise<void> {
  if (args["filters"] !== undefined) {
    await client.run("setFilter", args);
    return;
  }
  const offered = (await client.run("setFilter")) as FilterChoices | undefined;
  if (offered === undefined) return;
  type Item = vscode.QuickPickItem & { filters?: string[] };
  let kind = "";
  const items = offered.choices.flatMap((choice): Item[] => {
    const [label, ...rest] = choice.title.split(": ");
    const item: Item = { label: sentence(label ?? ""), description: rest.join(": "), filters: choice.filters };
    if (choice.kind === kind) return [item];
    kind = choice.kind;
    return [{ label: KINDS[kind] ?? kind, kind: vscode.QuickPickItemKind.Separator }, item];
  });
  const add: Item = { label: "$(add) Write a filter…", description: FILTER_HELP };
  const picked = await vscode.window.showQuickPick([add, ...items], { placeHolder: "Count only what?", matchOnDescription: true });
  if (picked === undefined) return;
  if (picked.filters === undefined) return addFilter(client, offered.applied);
  await client.run("setFilter", { filters: picked.filters });
}

async function addFilter(client: Client, filters: string[]): Promise<void> {
  const text = await vscode.window.showInputBox({ title: "Count only what matches", prompt: FILTER_HELP, placeHolder: "fn~parse" });
  if (text !== undefined && text.trim() !== "") await client.run("setFilter", { filters: [...filters, text.trim()] });
}

// ---- places

/** From the cursor's line where that is a hot spot, else from where one went last. */
async function go({ client, tree }: Parts, name: "nextHotspot" | "previousHotspot"): Promise<void> {
  const spot = (await client.run(name)) as Hotspot | null | undefined;
  if (spot?.uri != null) await tree.reveal(spot);
}

interface Here {
  document: vscode.TextDocument;
  /** From 1. */
  line: number;
}

/** Where a command was asked for, else where the cursor is. */
async function here({ file, line }: Arguments): Promise<Here | undefined> {
  if (typeof file === "string" && typeof line === "number") {
    const uri = file.startsWith("file:") ? vscode.Uri.parse(file) : vscode.Uri.file(file);
    return { document: await vscode.workspace.openTextDocument(uri), line };
  }
  const editor = vscode.window.activeTextEditor;
  return editor && { document: editor.document, line: editor.selection.active.line + 1 };
}

/** What the server offers for a line, in a list. */
async function showActions(parts: Parts, args: Arguments): Promise<void> {
  const { client } = parts;
  const at = await here(args);
  if (at === undefined) return;
  const asked = { file: client.uri(at.document), line: at.line, ...named(args) };
  const offered = (await client.run("showActions", asked)) as { line: number; choices: Command[] } | undefined;
  if (offered === undefined) return;
  const items = offered.choices.map((command) => ({ label: sentence(command.title.replace("perflens: ", "")), command }));
  const flamegraph = { label: "Flame graph", command: { title: "", command: "perflens.showFlamegraph" } as Command };
  const placeHolder = `${path.basename(at.document.fileName)}:${offered.line}`;
  const picked = await vscode.window.showQuickPick([...items, flamegraph], { placeHolder });
  if (picked === undefined) return;
  await runByHand(parts, picked.command.command.replace("perflens.", ""), (picked.command.arguments as unknown[] | undefined)?.[0]);
}

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** Callers and callees in a list; taking one goes there. */
async function showCallers({ client }: Parts, args: Arguments): Promise<void> {
  const at = await here(args);
  if (at === undefined) return;
  const of: Subject = args["of"] === "function" ? "function" : "line";
  const found = await client.ask(protocol.callers, { textDocument: { uri: client.uri(at.document) }, line: at.line - 1, of });
  const item = (neighbour: Neighbour, icon: string) => ({ label: `$(${icon}) ${neighbour.label}`, description: neighbour.file, neighbour });
  const heading = (label: string) => ({ label, kind: vscode.QuickPickItemKind.Separator, neighbour: undefined });
  const items = [
    heading("called by"),
    ...(found?.callers ?? []).map((each) => item(each, "call-incoming")),
    heading("calls"),
    ...(found?.callees ?? []).map((each) => item(each, "call-outgoing")),
  ];
  if (items.length === 2) {
    await vscode.window.showInformationMessage(`perflens: no samples in this ${of}.`);
    return;
  }
  const picked = await vscode.window.showQuickPick(items, { placeHolder: `Callers and callees of this ${of}`, matchOnDescription: true });
  if (picked?.neighbour?.uri == null) return;
  const line = (picked.neighbour.line ?? 1) - 1;
  await vscode.window.showTextDocument(vscode.Uri.parse(picked.neighbour.uri), { selection: new vscode.Range(line, 0, line, 0) });
}

/** The name that a lens says beside its line, which may have moved since. */
const named = ({ name }: Arguments) => (typeof name === "string" ? { name } : {});

/** What the cursor is in, unless something else is named. */
async function profileTest({ client }: Parts, args: Arguments): Promise<void> {
  const at = await here(args);
  if (at !== undefined) await client.run("profileTest", { file: client.uri(at.document), line: at.line, ...named(args) });
}

/** What the cursor is in, against its program of before the last edit. */
async function profileInTurns({ client }: Parts, args: Arguments): Promise<void> {
  const at = await here(args);
  const pairs = typeof args["pairs"] === "number" ? { pairs: args["pairs"] } : {};
  if (at !== undefined) await client.run("profileInTurns", { file: client.uri(at.document), line: at.line, ...named(args), ...pairs });
}

// ---- texts

async function explain({ client, texts }: Parts, args: Arguments): Promise<void> {
  const text = await client.run("explain", args);
  if (typeof text === "string") await texts.show("Explanation", `${text}\n`);
}

const SELECTION = { scope: "selection", label: "The selected lines" };
const SCOPES = [
  { scope: "line", label: "This line" },
  { scope: "function", label: "This function" },
  { scope: "file", label: "This file" },
  { scope: "workspace", label: "The whole workspace" },
  { scope: "comparison", label: "What has changed" },
];

/** The lines that are selected, from 1, unless a command was asked for at a place. */
function selection({ file }: Arguments): { line: number; endLine: number } | undefined {
  const selected = vscode.window.activeTextEditor?.selection;
  if (file !== undefined || selected === undefined || selected.isEmpty) return undefined;
  // What ends before the first character of a line has nothing of it.
  const last = selected.end.character === 0 ? selected.end.line - 1 : selected.end.line;
  return { line: selected.start.line + 1, endLine: Math.max(selected.start.line, last) + 1 };
}

/** Costs as a text for an assistant; `undefined` when somebody gave up, or there is none. */
async function textForAI({ client, statusBar }: Parts, args: Arguments, placeHolder: string): Promise<string | undefined> {
  const isComparing = statusBar.current?.state === "comparing";
  const selected = selection(args);
  const places = SCOPES.filter(({ scope }) => scope !== "comparison" || isComparing);
  const scopes = selected === undefined ? places : [SELECTION, ...places];
  const scope = args["scope"] ?? (await vscode.window.showQuickPick(scopes, { placeHolder }))?.scope;
  const at = await here(args);
  if (scope === undefined) return undefined;
  const isPlace = scope !== "workspace" && scope !== "comparison";
  const lines = scope === SELECTION.scope ? selected : undefined;
  const place = at === undefined || !isPlace ? {} : { file: at.document.uri.toString(), line: at.line, ...lines };
  const text = await client.run("copyForAI", { ...args, scope, ...place });
  return typeof text === "string" ? text : undefined;
}

async function copyForAI(parts: Parts, args: Arguments): Promise<void> {
  const text = await textForAI(parts, args, "Copy the costs of what?");
  if (text === undefined) return;
  await vscode.env.clipboard.writeText(text);
  vscode.window.setStatusBarMessage("$(check) Copied for an assistant", 4000);
}

/** As a new document, to be read, shortened or saved. */
async function openForAI(parts: Parts, args: Arguments): Promise<void> {
  const content = await textForAI(parts, args, "Open the costs of what?");
  if (content === undefined) return;
  const document = await vscode.workspace.openTextDocument(unusedName());
  const edit = new vscode.WorkspaceEdit();
  edit.insert(document.uri, new vscode.Position(0, 0), content);
  await vscode.workspace.applyEdit(edit);
  await vscode.window.showTextDocument(document);
}

/** Without a name of its own, VS Code would take the first line for it, with all its stars and backticks. */
function unusedName(): vscode.Uri {
  const taken = new Set(vscode.workspace.textDocuments.map(({ uri }) => uri.toString()));
  for (let number = 1; ; number++) {
    const uri = vscode.Uri.from({ scheme: "untitled", path: `Costs-${number}.md` });
    if (!taken.has(uri.toString())) return uri;
  }
}

const OPEN_CHAT = "workbench.action.chat.open";

/** Puts the text into the editor's chat. Nothing is sent before somebody sends it. */
async function askChat(parts: Parts, args: Arguments): Promise<void> {
  const query = await textForAI(parts, args, "Ask the chat about the costs of what?");
  if (query === undefined) return;
  try {
    await vscode.commands.executeCommand(OPEN_CHAT, { query, isPartialQuery: true });
  } catch {
    // Editors without a chat don't know the command.
    await vscode.env.clipboard.writeText(query);
    void vscode.window.showInformationMessage("perflens: this editor has no chat to ask; the text is in the clipboard.");
  }
}

// ---- what is shown

async function toggleHints({ hints }: Parts, { mode }: Arguments): Promise<void> {
  if (typeof mode === "string" && mode in MODES) return hints.set(mode as Mode);
  const items = (Object.keys(MODES) as Mode[]).map((each) => ({
    mode: each,
    label: MODES[each].title,
    description: each === hints.mode ? "shown" : "",
    detail: MODES[each].detail,
  }));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "Show the costs of which lines?" });
  if (picked !== undefined) await hints.set(picked.mode);
}

async function showStatus({ client, texts, statusBar }: Parts): Promise<void> {
  const status = await statusBar.fetch();
  if (status === undefined) return client.tellProblem();
  await texts.show("Status", `${[status.text, "", ...status.details, "", `perflens ${client.program?.version} from ${client.program?.file}`].join("\n")}\n`);
}

interface MenuItem extends vscode.QuickPickItem {
  name?: string;
}

async function showMenu(parts: Parts): Promise<void> {
  const { client, statusBar } = parts;
  if (!client.isRunning) return client.tellProblem();
  const status = await statusBar.fetch();
  const hasProfile = status?.state === "loaded" || status?.state === "comparing";
  const item = (name: string, label: string, detail?: string): MenuItem => ({ name, label, ...(detail !== undefined && { detail }) });
  const heading = (label: string): MenuItem => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const other = otherCommands(client).map(({ name, title }) => item(name, title));
  const items: MenuItem[] = hasProfile
    ? [
        item("showHotspots", "$(list-ordered) Hot spots"),
        item("showFlamegraph", "$(flame) Flame graph"),
        item("explain", "$(question) Explain what is shown", status.details[0]),
        ...(client.has("copyForAI") ? [item("copyForAI", "$(copy) Copy for an assistant"), item("askChat", "$(comment-discussion) Ask the chat")] : []),
        heading("count"),
        ...(client.has("selectPreset") ? [item("selectPreset", "$(bookmark) Presets")] : []),
        item("selectValueType", `$(symbol-numeric) Value type: ${status.valueType ?? ""}`),
        item("setFilter", "$(filter) Filters"),
        status.state === "comparing" ? item("stopComparing", "$(diff) Stop comparing") : item("compareWith", "$(diff) Compare with another profile"),
        heading("show"),
        item("toggleHints", `$(eye) Costs at lines: ${MODES[parts.hints.mode].title.toLowerCase()}`),
        item("togglePlacement", "$(split-horizontal) Costs before or behind the code"),
        heading("profile"),
        item("openProfile", "$(folder-opened) Open another profile"),
        item("refresh", "$(refresh) Refresh"),
        item("clear", "$(close) Close the profile"),
        ...other,
        heading("perflens"),
        item("openSettings", "$(gear) Settings"),
        item("showOutput", "$(output) Output"),
      ]
    : [
        item("openProfile", "$(folder-opened) Open a profile"),
        item("openDemo", "$(beaker) Open the demo"),
        item("openWalkthrough", "$(book) First steps"),
        ...other,
        ...(status?.state === "error" ? [item("showStatus", "$(error) What is wrong", status.details[0])] : []),
        heading("perflens"),
        item("openSettings", "$(gear) Settings"),
        item("showOutput", "$(output) Output"),
      ];
  if (status !== undefined && status.ignored.length > 0) items.push(item("trustWorkspace", "$(workspace-untrusted) Trust this workspace's perflens.toml"));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: status?.text ?? "perflens", matchOnDetail: true });
  if (picked?.name !== undefined) await runByHand(parts, picked.name, undefined);
}

/** Commands of the server that need no place and have no row of their own in the menu. */
function otherCommands(client: Client): { name: string; title: string }[] {
  return COMMANDS.filter(({ name, arguments: args }) => !hasOwnWay(name) && client.has(name) && !args.some((each) => each.required) && !["refresh", "stopComparing", "chooseMatch", "trustWorkspace"].includes(name));
}
