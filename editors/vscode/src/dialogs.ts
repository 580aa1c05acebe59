// What is asked for before a profiling server is, or something is recorded: what, of which labels and values,
// of which time; which process or command, and what of it. The server knows what there is.

import * as vscode from "vscode";
import type { Client } from "./client";
import { selector } from "./selector";

type Arguments = Readonly<Record<string, unknown>>;

interface Item extends vscode.QuickPickItem {
  value?: string;
}

const heading = (label: string): Item => ({ label, kind: vscode.QuickPickItemKind.Separator });

// ---- queries

interface Queries {
  choices: { title: string; selector: string; range: string }[];
  profileTypes: string[];
  ranges: string[];
}

/** A preset of the server; or a profile type, then labels, their values, and a time. */
export async function query(client: Client, args: Arguments): Promise<void> {
  if (typeof args["selector"] === "string") {
    await client.run("query", args);
    return;
  }
  const offered = (await client.run("query")) as Queries | undefined;
  if (offered === undefined) return;
  const presets = offered.choices.map(({ title }) => ({ label: `$(bookmark) ${title}`, value: title }));
  const types = offered.profileTypes.map((type) => ({ label: `$(symbol-numeric) ${type}`, value: type }));
  const items: Item[] = [...presets, heading("choose labels, values and time"), ...types];
  const picked = (await vscode.window.showQuickPick(items, { placeHolder: "Ask the server for what?" }))?.value;
  if (picked === undefined) return;
  const preset = offered.choices.find(({ title }) => title === picked);
  const labels = preset === undefined ? await pickLabels(client, picked) : undefined;
  if (preset === undefined && labels === undefined) return;
  const range = preset?.range ?? (await pickRange(offered.ranges));
  if (range === undefined) return;
  await client.run("query", { selector: preset?.selector ?? selector(picked, labels ?? new Map()), range });
}

/** Values by label, of those that were picked; `undefined` when somebody gave up. */
async function pickLabels(client: Client, profileType: string): Promise<Map<string, string[]> | undefined> {
  const names = ((await client.run("listLabels", { selector: profileType })) as string[] | undefined) ?? [];
  const chosen = names.length === 0 ? [] : await pickMany(names, "Only some? Pick labels to narrow it; none means everything");
  if (chosen === undefined) return undefined;
  const labels = new Map<string, string[]>();
  for (const label of chosen) {
    // What was picked before narrows what there is to pick.
    const narrowed = selector(profileType, labels);
    const values = ((await client.run("listLabels", { selector: narrowed, label })) as string[] | undefined) ?? [];
    const picked = await pickMany(values, `Which ${label}? Any of those that you pick`);
    if (picked === undefined) return undefined;
    labels.set(label, picked);
  }
  return labels;
}

async function pickMany(all: string[], placeHolder: string): Promise<string[] | undefined> {
  const items = all.map((label) => ({ label }));
  const picked = await vscode.window.showQuickPick(items, { canPickMany: true, placeHolder });
  return picked?.map(({ label }) => label);
}

/** The same of another time. */
export async function setTimeRange(client: Client, args: Arguments): Promise<void> {
  if (typeof args["range"] === "string") {
    await client.run("setTimeRange", args);
    return;
  }
  const offered = (await client.run("setTimeRange")) as { choices: string[] } | undefined;
  const range = offered && (await pickRange(offered.choices));
  if (range !== undefined) await client.run("setTimeRange", { range });
}

async function pickRange(ranges: string[]): Promise<string | undefined> {
  const own: Item = { label: "$(edit) Another time…", description: "an hour of yesterday, from … to …" };
  const items: Item[] = [...ranges.map((range) => ({ label: `$(clock) The last ${range}`, value: range })), own];
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "Of which time?" });
  if (picked === undefined || picked.value !== undefined) return picked?.value;
  const typed = await vscode.window.showInputBox({
    title: "Of which time?",
    prompt: "30m is the last 30 minutes, 1h@24h an hour that ended a day ago; or two times with a slash between them",
    placeHolder: "2026-01-31T14:00:00Z/2026-01-31T14:30:00Z",
    validateInput: (text) => (text.trim() === "" || isRange(text.trim()) ? undefined : "Write it as 30m, 1h@24h or FROM/TO"),
  });
  return typed === undefined || typed.trim() === "" ? undefined : typed.trim();
}

/** Whether a text could be a time; the server decides. */
export function isRange(text: string): boolean {
  return /^\d+(ms|s|m|h|d|w)(@\d+(ms|s|m|h|d|w))?$/.test(text) || /^\S+\/\S+$/.test(text);
}

// ---- recordings

const EVENTS = [
  { label: "$(pulse) Time on a processor", value: "cpu" },
  { label: "$(watch) Time waiting", value: "off-cpu" },
  { label: "$(database) Memory, where it is allocated", value: "alloc" },
];

/** A process of the workspace or a command, and what of it. */
export async function record(client: Client, args: Arguments): Promise<void> {
  if (typeof args["target"] === "string") {
    await client.run("record", args);
    return;
  }
  const offered = (await client.run("record", args)) as { choices: { title: string; target: string }[]; example: string } | undefined;
  if (offered === undefined) return;
  const processes = offered.choices.map(({ title, target }) => ({ label: `$(server-process) ${title}`, description: target, value: target }));
  const command: Item = { label: "$(terminal) A command…", description: "runs it and records it until it ends" };
  const running = processes.length === 0 ? [] : [heading("running in this workspace"), ...processes];
  const picked = await vscode.window.showQuickPick([command, ...running], { placeHolder: "Record what?", matchOnDescription: true });
  if (picked === undefined) return;
  const placeHolder = offered.example.replace(/^\S+ /, "").replaceAll("'", "");
  const target = picked.value ?? (await vscode.window.showInputBox({ title: "Record which command?", placeHolder }))?.trim();
  if (target === undefined || target === "") return;
  const event = args["event"] ?? (await vscode.window.showQuickPick(EVENTS, { placeHolder: "Record what of it?" }))?.value;
  if (event !== undefined) await client.run("record", { ...args, target, event });
}
