// The demo: a small program with a profile of it, in a folder of its own that may be changed.

import { cp, mkdir } from "node:fs/promises";
import path from "node:path";
import * as vscode from "vscode";

const PROFILE = "profile.pb.gz";
const SOURCE = "logstats.go";

function folder(extension: vscode.ExtensionContext): string {
  return path.join(extension.globalStorageUri.fsPath, "demo");
}

/** Opens it: here when nothing else is open, else in a new window. */
export async function openDemo(extension: vscode.ExtensionContext): Promise<void> {
  const to = folder(extension);
  await mkdir(to, { recursive: true });
  // What somebody changed in an earlier copy stays.
  await cp(extension.asAbsolutePath(path.join("dist", "demo")), to, { recursive: true, force: false });
  const forceNewWindow = vscode.workspace.workspaceFolders !== undefined;
  await vscode.commands.executeCommand("vscode.openFolder", vscode.Uri.file(to), { forceNewWindow });
}

/** The profile to show at once, when this window is the demo's. */
export async function profileOfDemo(extension: vscode.ExtensionContext): Promise<string | undefined> {
  const opened = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  if (opened !== folder(extension)) return undefined;
  await vscode.window.showTextDocument(vscode.Uri.file(path.join(opened, SOURCE)), { preview: false });
  return path.join(opened, PROFILE);
}
