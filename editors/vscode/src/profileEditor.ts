// What a profile looks like when somebody opens its file: what it is of, what costs most in it, and
// the offer to show that in the code. Nothing is loaded before it is taken.

import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";
import type { Client } from "./client";
import type { FromProfilePage } from "./webview/messages";
import { escape, options, page } from "./webviews";

const VIEW_TYPE = "perflens.profile";
const ROWS = "12";
const PATIENCE_MS = 30_000;
const MAX_BYTES = 1 << 20;

export function register(extension: vscode.ExtensionContext, client: Client): vscode.Disposable {
  return vscode.window.registerCustomEditorProvider(VIEW_TYPE, {
    openCustomDocument: (uri) => ({ uri, dispose: () => undefined }),
    resolveCustomEditor({ uri }, { webview }) {
      webview.options = options(extension);
      webview.onDidReceiveMessage(({ command }: FromProfilePage) => vscode.commands.executeCommand(`perflens.ui.${command}`, uri));
      const show = (text: string) => {
        const body = `<h1>${escape(path.basename(uri.fsPath))}</h1>
<p><button data-command="openThisProfile">Show its costs in the code</button>
<button data-command="compareWithThisProfile" class="second">Compare what is open with it</button></p>
<pre>${escape(text)}</pre>`;
        webview.html = page(webview, extension, { title: "Profile", script: "profile.js", style: "profile.css", body });
      };
      show("…");
      void report(client, uri.fsPath).then(show);
    },
  });
}

/** The report of the command line, as text. */
async function report(client: Client, file: string): Promise<string> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  if (client.program === undefined) return client.problem ?? "perflens is starting.";
  const where = folder === undefined ? [] : ["--workspace", folder];
  try {
    const args = ["report", file, ...where, "--top", ROWS];
    const { stdout } = await promisify(execFile)(client.program.file, args, { timeout: PATIENCE_MS, maxBuffer: MAX_BYTES });
    return stdout;
  } catch (problem) {
    const { stderr } = problem as { stderr?: string };
    return stderr !== undefined && stderr !== "" ? stderr : String(problem);
  }
}
