// Choosing a profile: those opened before, those of the workspace, any other file. And which one is
// open in this workspace, so that it is there again tomorrow.

import { stat } from "node:fs/promises";
import path from "node:path";
import * as vscode from "vscode";

const EXTENSIONS = ["pprof", "prof", "pb", "folded", "collapsed", "cpuprofile", "heapprofile", "speedscope.json"];
const PACKED = ["", ".gz", ".zst"];
const GLOB = `**/*.{${EXTENSIONS.flatMap((name) => PACKED.map((packed) => name + packed)).join(",")}}`;
const NOT_THERE = "**/{node_modules,target,.git,.venv}/**";
const MAX_FOUND = 50;
const MAX_RECENT = 10;
const RECENT = "perflens.recent";
const OPEN = "perflens.open";

interface Item extends vscode.QuickPickItem {
  file?: string;
}

/** What was open when the window was closed. */
export interface Opened {
  path: string;
  type?: string | undefined;
}

export class Profiles {
  constructor(private readonly memory: vscode.Memento) {}

  get open(): Opened | undefined {
    return this.memory.get<Opened>(OPEN);
  }

  async remember(opened: Opened | undefined): Promise<void> {
    // What comes over the network is fetched when somebody asks for it, not because a window opens.
    await this.memory.update(OPEN, opened !== undefined && isAddress(opened.path) ? undefined : opened);
    if (opened === undefined || hasSecret(opened.path)) return;
    const recent = this.recent.filter((each) => each !== opened.path);
    await this.memory.update(RECENT, [opened.path, ...recent].slice(0, MAX_RECENT));
  }

  /** Asks for a profile; an absolute path, or an address. */
  async pick(placeHolder: string): Promise<string | undefined> {
    const found = await vscode.workspace.findFiles(GLOB, NOT_THERE, MAX_FOUND);
    const recent = await items(this.recent);
    const others = await items(found.map(({ fsPath }) => fsPath).filter((file) => !this.recent.includes(file)));
    const browse: Item = { label: "$(folder-opened) Browse…", alwaysShow: true };
    const address: Item = { label: "$(globe) Address…", alwaysShow: true };
    const heading = (label: string): Item => ({ label, kind: vscode.QuickPickItemKind.Separator });
    const all = [
      ...(recent.length > 0 ? [heading("opened before"), ...recent] : []),
      ...(others.length > 0 ? [heading("in this workspace"), ...others] : []),
      heading("another"),
      browse,
      address,
    ];
    const picked = await vscode.window.showQuickPick(all, { placeHolder, matchOnDescription: true });
    if (picked === browse) return browseFor(placeHolder);
    return picked === address ? askForAddress(placeHolder) : picked?.file;
  }

  private get recent(): string[] {
    return this.memory.get<string[]>(RECENT, []);
  }
}

export function isAddress(profile: string): boolean {
  return profile.includes("://");
}

/** Names and passwords are not kept. */
function hasSecret(profile: string): boolean {
  return isAddress(profile) && /:\/\/[^/]*@/.test(profile);
}

async function askForAddress(title: string): Promise<string | undefined> {
  const text = await vscode.window.showInputBox({
    title,
    prompt: "Of a program that serves profiles, or of a page of a profiling server",
    placeHolder: "http://localhost:6060/debug/pprof/profile?seconds=10",
    validateInput: (text) => (text === "" || isAddress(text) ? undefined : "An address begins with http:// or https://"),
  });
  return text === "" ? undefined : text;
}

/** The newest file first; files that are gone are left out. */
async function items(profiles: string[]): Promise<Item[]> {
  const addresses = profiles.filter(isAddress).map((file) => ({ label: file, file }));
  const dated = await Promise.all(
    profiles.filter((profile) => !isAddress(profile)).map(async (file) => {
      const found = await stat(file).catch(() => undefined);
      return found === undefined ? undefined : { file, time: found.mtimeMs };
    }),
  );
  const files = dated
    .filter((each) => each !== undefined)
    .sort((a, b) => b.time - a.time)
    .map(({ file, time }) => ({ label: path.basename(file), description: age(Date.now() - time), detail: shortPath(file), file }));
  return [...files, ...addresses];
}

function shortPath(file: string): string {
  return vscode.workspace.asRelativePath(path.dirname(file));
}

/** In the largest unit that is not 0. */
export function age(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ago`;
  return `${Math.floor(hours / 24)} days ago`;
}

async function browseFor(title: string): Promise<string | undefined> {
  const defaultUri = vscode.workspace.workspaceFolders?.[0]?.uri;
  const picked = await vscode.window.showOpenDialog({ title, openLabel: "Open", ...(defaultUri && { defaultUri }) });
  return picked?.[0]?.fsPath;
}
