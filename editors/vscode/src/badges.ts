// Badges in the explorer: what percentage of everything a file causes.

import * as vscode from "vscode";
import type { Client } from "./client";
import * as protocol from "./protocol";
import type { FileCost } from "./protocol";
import * as settings from "./settings";

export class Badges implements vscode.FileDecorationProvider, vscode.Disposable {
  private costs = new Map<string, FileCost>();
  private readonly changes = new vscode.EventEmitter<vscode.Uri[]>();
  private readonly subscriptions: vscode.Disposable[];

  readonly onDidChangeFileDecorations = this.changes.event;

  constructor(private readonly client: Client) {
    this.subscriptions = [
      this.changes,
      vscode.window.registerFileDecorationProvider(this),
      client.onDidChange(() => void this.fetch()),
      settings.onChange(["badges"], () => void this.fetch()),
    ];
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    const cost = uri.scheme === "file" ? this.costs.get(uri.toString()) : undefined;
    if (cost === undefined) return undefined;
    // Without a colour: a coloured name is how the explorer shows errors and changes.
    return { badge: badge(cost.percent), tooltip: cost.label };
  }

  private async fetch(): Promise<void> {
    const files = settings.own<boolean>("badges") ? ((await this.client.ask(protocol.files, {})) ?? []) : [];
    const before = this.costs;
    const warm = files.filter(({ level }) => level > 0);
    this.costs = new Map(warm.map((file) => [vscode.Uri.parse(file.uri).toString(), file]));
    const touched = new Set([...before.keys(), ...this.costs.keys()]);
    const isOther = (uri: string) => before.get(uri)?.label !== this.costs.get(uri)?.label;
    this.changes.fire([...touched].filter(isOther).map((uri) => vscode.Uri.parse(uri)));
  }
}

/** Two characters are all there is room for. */
function badge(percent: string): string {
  const digits = percent.replace("%", "");
  return digits.length <= 2 ? digits : "●";
}
