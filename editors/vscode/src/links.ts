// Follows links that lead into the editor, each only after a person has seen what it would do.

import * as vscode from "vscode";
import { describe, parse } from "./link";

export function register(open: (file: string, type?: string) => Promise<void>, filter: (filters: string[]) => Promise<unknown>): vscode.Disposable {
  return vscode.window.registerUriHandler({
    async handleUri(uri) {
      const link = parse(uri.path, uri.query);
      const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
      if (link instanceof Error || folder === undefined) {
        const why = link instanceof Error ? link.message : "no folder is open";
        void vscode.window.showWarningMessage(`perflens: this link is not followed, ${why}.`);
        return;
      }
      const answer = await vscode.window.showInformationMessage("Follow this link of perflens?", { modal: true, detail: describe(link) }, "Follow");
      if (answer !== "Follow") return;
      if (link.profile !== undefined) await open(vscode.Uri.joinPath(folder, link.profile).fsPath, link.type);
      if (link.filters.length > 0) await filter(link.filters);
      if (link.file !== undefined) {
        const line = (link.line ?? 1) - 1;
        await vscode.window.showTextDocument(vscode.Uri.joinPath(folder, link.file), { selection: new vscode.Range(line, 0, line, 0) });
      }
    },
  });
}
