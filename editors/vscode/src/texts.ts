// Texts of the server in an editor: read-only, plain, and gone when closed.

import * as vscode from "vscode";

const SCHEME = "perflens-text";
/** The server's own addresses: of files that a profile names and this machine doesn't have. */
const MISSING = "perflens";

export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changes = new vscode.EventEmitter<vscode.Uri>();
  private readonly subscriptions: vscode.Disposable[];

  readonly onDidChange = this.changes.event;

  constructor() {
    this.subscriptions = [
      this.changes,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.registerTextDocumentContentProvider(MISSING, {
        provideTextDocumentContent: ({ path }) => `${path}\n\nThe profile names this file; it is not on this machine.\n`,
      }),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => {
        if (uri.scheme === SCHEME) this.texts.delete(uri.path);
      }),
    ];
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  provideTextDocumentContent({ path }: vscode.Uri): string {
    return this.texts.get(path) ?? "";
  }

  async show(name: string, text: string, language = "plaintext"): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}` });
    this.texts.set(uri.path, text);
    this.changes.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, language);
    await vscode.window.showTextDocument(document, { preview: true });
  }
}
