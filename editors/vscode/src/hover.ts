// Links under the server's hovers and tooltips: what one wants next after reading the numbers.

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { LINKED } from "./client";

const LINKS = [
  ["Callers", "showCallers"],
  ["Flame graph", "showFlamegraph"],
  ["Copy for an assistant", "copyForAI"],
] as const;

export function middleware(has: (name: string) => boolean): Pick<Middleware, "provideHover" | "resolveInlayHint"> {
  const links = (file: vscode.Uri, line: number) =>
    LINKS.filter(([, name]) => name !== "copyForAI" || has(name))
      .map(([title, name]) => {
        const args = encodeURIComponent(JSON.stringify([{ file: file.toString(), line: line + 1 }]));
        return `[${title}](command:perflens.ui.${name}?${args})`;
      })
      .join(" · ");
  const add = (text: vscode.MarkdownString, file: vscode.Uri, line: number) => {
    text.isTrusted = { enabledCommands: LINKED };
    text.appendMarkdown(`  \n${links(file, line)}`);
  };
  return {
    async provideHover(document, position, token, next) {
      const hover = await next(document, position, token);
      const text = hover?.contents.at(-1);
      if (text instanceof vscode.MarkdownString) add(text, document.uri, position.line);
      return hover;
    },
    async resolveInlayHint(hint, token, next) {
      const resolved = await next(hint, token);
      const { tooltip } = resolved ?? {};
      const document = vscode.window.activeTextEditor?.document;
      if (tooltip instanceof vscode.MarkdownString && document !== undefined) add(tooltip, document.uri, hint.position.line);
      return resolved;
    },
  };
}
