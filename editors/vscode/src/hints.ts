// Which of the server's hints are shown: all, hot ones, those of the cursor's line, or none.
//
// Only ours: whatever other servers draw at the end of lines stays. What is hot, the server decides;
// the rest is decided here, so that a key shows and hides without a round trip.

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import type { Client } from "./client";
import * as settings from "./settings";

export const MODES = {
  all: { title: "All lines", detail: "Every line that costs enough" },
  hot: { title: "Hot lines", detail: "Only lines with at least 3 % of what is in this workspace" },
  line: { title: "The cursor's line", detail: "Only the line you are on" },
  off: { title: "None", detail: "Bars and functions stay" },
} as const;

export type Mode = keyof typeof MODES;

export class Hints implements vscode.Disposable {
  private chosen: Mode | undefined;
  /** What was shown before it was switched off. */
  private before: Mode = "all";
  private lastLine = -1;
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly client: () => Client) {
    this.subscriptions = [
      vscode.window.onDidChangeTextEditorSelection(({ textEditor, selections }) => {
        const line = selections[0]?.active.line ?? -1;
        if (this.mode !== "line" || line === this.lastLine) return;
        this.lastLine = line;
        this.ask(textEditor.document);
      }),
      settings.onChange(["hints.mode"], () => (this.chosen = undefined)),
      settings.onChange(["placement"], () => this.askAll()),
    ];
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  get mode(): Mode {
    return this.chosen ?? settings.own<Mode>("hints.mode");
  }

  /** Shows what a mode says; without one, switches between none and what was shown. */
  async set(mode: Mode = this.mode === "off" ? this.before : "off"): Promise<void> {
    if (this.mode !== "off") this.before = this.mode;
    this.chosen = mode;
    await this.client().run("toggleHints", { mode: mode === "line" ? "all" : mode });
    this.askAll();
  }

  readonly middleware: Pick<Middleware, "provideInlayHints"> = {
    provideInlayHints: async (document, range, token, next) => {
      if (this.mode === "off" || isInColumn(document)) return [];
      const hints = await next(document, range, token);
      if (this.mode !== "line") return hints;
      const editor = vscode.window.visibleTextEditors.find((each) => each.document === document);
      return hints?.filter((hint) => hint.position.line === editor?.selection.active.line);
    },
  };

  private askAll(): void {
    for (const { document } of vscode.window.visibleTextEditors) this.ask(document);
  }

  private ask(document: vscode.TextDocument): void {
    this.client().feature("textDocument/inlayHint")?.getProvider(document)?.onDidChangeInlayHints.fire();
  }
}

/** Whether costs stand in a column before the code of a document. Wrapped lines leave no room for it. */
export function isInColumn(document: vscode.TextDocument): boolean {
  if (settings.own<string>("placement", document) !== "column") return false;
  return vscode.workspace.getConfiguration("editor", document).get<string>("wordWrap") === "off";
}
