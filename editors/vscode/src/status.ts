// The status bar: two facts, the rest in its tooltip, and a menu behind it. Also the contexts that
// menus and keys depend on.

import * as vscode from "vscode";
import type { Client } from "./client";
import * as protocol from "./protocol";
import type { Status } from "./protocol";

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("perflens.status", vscode.StatusBarAlignment.Left, 0);
  private all: Status[] = [];
  private clock: NodeJS.Timeout | undefined;
  private readonly changes = new vscode.EventEmitter<Status | undefined>();
  private readonly subscriptions: vscode.Disposable[];

  /** What is shown is of another state. */
  readonly onDidChange = this.changes.event;

  constructor(private readonly client: Client) {
    this.item.name = "perflens";
    this.item.command = "perflens.ui.showMenu";
    this.subscriptions = [
      this.item,
      this.changes,
      client.onDidChange(() => void this.fetch()),
      vscode.window.onDidChangeActiveTextEditor(() => this.draw()),
    ];
  }

  dispose(): void {
    clearTimeout(this.clock);
    for (const each of this.subscriptions) each.dispose();
  }

  /** Of the folder of the active editor, else of the first with a profile. */
  get current(): Status | undefined {
    const document = vscode.window.activeTextEditor?.document;
    const folder = document && vscode.workspace.getWorkspaceFolder(document.uri)?.uri.fsPath;
    const own = this.all.find((each) => each.folder === folder);
    if (own !== undefined && own.state !== "none") return own;
    return this.all.find((each) => each.state !== "none") ?? own ?? this.all[0];
  }

  /** Asks now. */
  async fetch(): Promise<Status | undefined> {
    this.all = (await this.client.ask(protocol.status, {})) ?? [];
    this.draw();
    clearTimeout(this.clock);
    // While something is recorded its time goes on, and nothing else tells.
    if (this.current?.icon === "record") this.clock = setTimeout(() => void this.fetch(), 1000);
    return this.current;
  }

  private draw(): void {
    const status = this.current;
    const state = this.client.isRunning ? (status?.state ?? "none") : "stopped";
    const hasProfile = state === "loaded" || state === "comparing";
    void vscode.commands.executeCommand("setContext", "perflens.state", state);
    void vscode.commands.executeCommand("setContext", "perflens.hasProfile", hasProfile);
    if (this.client.isRunning) {
      this.item.text = `$(${status?.icon ?? "flame"}) ${status?.text ?? "no profile"}`;
      this.item.tooltip = tooltip(status, this.client);
    } else {
      this.item.text = this.client.problem === undefined ? "$(sync~spin) perflens" : "$(error) perflens";
      this.item.tooltip = this.client.problem ?? "starting";
    }
    this.item.show();
    this.changes.fire(status);
  }
}

function tooltip(status: Status | undefined, { program }: Client): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  // What is in them comes from profiles: plain text only.
  for (const detail of status?.details ?? []) text.appendText(detail).appendMarkdown("\n\n");
  text.appendText(`perflens ${program?.version ?? ""}`);
  return text;
}
