// What all webviews share: a page that may run one script of ours and nothing else.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

export interface Page {
  title: string;
  /** In dist/. */
  script: string;
  /** In dist/. */
  style: string;
  body: string;
}

export function page(webview: vscode.Webview, extension: vscode.ExtensionContext, { title, script, style, body }: Page): string {
  const nonce = randomBytes(16).toString("base64");
  const address = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(extension.extensionUri, "dist", name)).toString();
  const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1.0">
<link rel="stylesheet" href="${address(style)}">
<title>${escape(title)}</title>
</head>
<body>
${body}
<script nonce="${nonce}" src="${address(script)}"></script>
</body>
</html>`;
}

export function options(extension: vscode.ExtensionContext): vscode.WebviewOptions {
  return { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(extension.extensionUri, "dist")] };
}

/** Text as text, whatever it holds. */
export function escape(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (each) => entities[each] ?? each);
}
