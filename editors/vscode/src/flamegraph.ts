// The flame graph beside the code. It follows the cursor, and leads to the source.
//
// The page draws, this side asks and opens; what they say to each other is `webview/messages.ts`.

import * as vscode from "vscode";
import type { Client } from "./client";
import type { Heat } from "./heat";
import * as protocol from "./protocol";
import type { Flamegraph } from "./protocol";
import type { FromPage, ToPage } from "./webview/messages";
import { options, page } from "./webviews";

const VIEW_TYPE = "perflens.flamegraph";
const CURSOR_RESTS_MS = 150;

export class Flamegraphs implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private graph: Flamegraph | undefined;
  private timer: NodeJS.Timeout | undefined;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly extension: vscode.ExtensionContext,
    private readonly client: Client,
    private readonly heat: Heat,
  ) {
    this.subscriptions = [
      client.onDidChange(() => void this.fetch()),
      vscode.window.onDidChangeTextEditorSelection(() => this.follow()),
      vscode.window.onDidChangeActiveTextEditor(() => this.follow()),
      heat.onDidChange(() => this.follow()),
      vscode.window.registerWebviewPanelSerializer(VIEW_TYPE, {
        // Of a window that was closed: there again with what is open now.
        deserializeWebviewPanel: (panel) => {
          this.adopt(panel);
          return Promise.resolve();
        },
      }),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.panel?.dispose();
    for (const each of this.subscriptions) each.dispose();
  }

  show(): void {
    if (this.panel !== undefined) {
      this.panel.reveal(undefined, true);
      return;
    }
    const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    this.adopt(vscode.window.createWebviewPanel(VIEW_TYPE, "Flame graph", column));
  }

  private adopt(panel: vscode.WebviewPanel): void {
    this.panel = panel;
    const icon = (name: string) => vscode.Uri.joinPath(this.extension.extensionUri, "media", name);
    panel.iconPath = { light: icon("panel-light.svg"), dark: icon("panel-dark.svg") };
    panel.onDidDispose(() => (this.panel = undefined));
    panel.webview.options = options(this.extension);
    panel.webview.onDidReceiveMessage((message: FromPage) => void this.receive(message));
    panel.webview.html = page(panel.webview, this.extension, {
      title: "Flame graph",
      script: "flamegraph.js",
      style: "flamegraph.css",
      body: '<div id="flamegraph"></div>',
    });
  }

  private async receive(message: FromPage): Promise<void> {
    switch (message.kind) {
      case "ready":
        await this.fetch();
        return;
      case "open": {
        const target = this.graph?.functions[message.function];
        if (target?.uri == null) return;
        const line = target.line ?? 0;
        await vscode.window.showTextDocument(vscode.Uri.parse(target.uri), {
          selection: new vscode.Range(line, 0, line, 0),
          viewColumn: this.codeColumn(),
        });
      }
    }
  }

  /** Where there is code already, so that the graph stays in sight. */
  private codeColumn(): vscode.ViewColumn {
    const others = vscode.window.visibleTextEditors.map(({ viewColumn }) => viewColumn);
    return others.find((column) => column !== undefined && column !== this.panel?.viewColumn) ?? vscode.ViewColumn.Beside;
  }

  private async fetch(): Promise<void> {
    if (this.panel === undefined) return;
    this.graph = (await this.client.ask(protocol.flamegraph, {})) ?? undefined;
    this.tell({ kind: "graph", graph: this.graph });
    this.follow();
  }

  private follow(): void {
    if (this.panel === undefined) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const editor = vscode.window.activeTextEditor;
      if (editor?.document.uri.scheme !== "file") return;
      this.tell({ kind: "cursor", name: this.heat.functionAt(editor.document, editor.selection.active.line) });
    }, CURSOR_RESTS_MS);
  }

  private tell(message: ToPage): void {
    void this.panel?.webview.postMessage(message);
  }
}
