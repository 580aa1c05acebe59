// The settings: the extension's own, and those of the server that the user has set.

import * as vscode from "vscode";
import server from "./generated/server.json";

const SECTION = "perflens";

/** A setting of the extension itself. */
export function own<T>(name: string, scope?: vscode.ConfigurationScope): T {
  return vscode.workspace.getConfiguration(SECTION, scope).get<T>(name) as T;
}

/** Changes a setting where it was set, else for the user. */
export async function change(name: string, value: unknown): Promise<void> {
  const settings = vscode.workspace.getConfiguration(SECTION);
  const isWorkspaces = settings.inspect(name)?.workspaceValue !== undefined;
  const target = isWorkspaces ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global;
  await settings.update(name, value, target);
}

/**
 * What the user has set of the server's settings, as the server reads it. Defaults are left out:
 * sent like values they would beat those of `perflens.toml`.
 */
export function ofServer(scope: vscode.Uri | undefined): Record<string, unknown> {
  const settings = vscode.workspace.getConfiguration(SECTION, scope);
  const sent: Record<string, unknown> = {};
  for (const name of server.settings) {
    if (!isSet(settings, name)) continue;
    // A list, or tables under names of the user's, are a group and a setting in one.
    const [group, key] = name.split(".") as [string, string?];
    const value: unknown = settings.get(name);
    sent[group] = key === undefined ? value : { ...(sent[group] as object | undefined), [key]: value };
  }
  return sent;
}

function isSet(settings: vscode.WorkspaceConfiguration, name: string): boolean {
  const found = settings.inspect(name);
  return [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue].some((value) => value !== undefined);
}

/** Calls back when one of these settings of the extension changes. */
export function onChange(names: string[], listener: () => void): vscode.Disposable {
  return vscode.workspace.onDidChangeConfiguration((event) => {
    if (names.some((name) => event.affectsConfiguration(`${SECTION}.${name}`))) listener();
  });
}
