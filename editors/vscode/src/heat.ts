// Heat beside the code: a bar, marks in the overview ruler, a tint, and the column of numbers.
//
// All of it from `perflens/heat`. While somebody types nothing is asked: the editor moves marks with
// their lines, and a moment later the server says where they are.

import * as vscode from "vscode";
import type { Client } from "./client";
import { isInColumn } from "./hints";
import * as protocol from "./protocol";
import type { Heat as Marks, HeatLine } from "./protocol";
import * as settings from "./settings";

const IDLE_MS = 250;
const LEVELS = [1, 2, 3, 4] as const;
/** From this level on there are marks in the ruler, and a tint. */
const HOT = 2;
const BAR = "0 0 0 3px";

type Kind = (typeof LEVELS)[number] | "better";

export class Heat implements vscode.Disposable {
  private types = new Map<Kind, vscode.TextEditorDecorationType>();
  private readonly column = vscode.window.createTextEditorDecorationType({});
  private readonly marks = new Map<string, Marks>();
  private readonly timers = new Map<string, NodeJS.Timeout>();
  private readonly changes = new vscode.EventEmitter<vscode.TextDocument>();
  private readonly subscriptions: vscode.Disposable[];

  /** There are other marks for a document. */
  readonly onDidChange = this.changes.event;

  constructor(private readonly client: Client) {
    this.makeTypes();
    this.subscriptions = [
      this.column,
      this.changes,
      client.onDidChange(() => this.lookAgain()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.lookAgain()),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0) this.schedule(document, IDLE_MS);
      }),
      vscode.workspace.onDidCloseTextDocument((document) => this.marks.delete(document.uri.toString())),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("perflens.heat") || event.affectsConfiguration("perflens.placement") || event.affectsConfiguration("editor.wordWrap")) {
          this.makeTypes();
          for (const editor of vscode.window.visibleTextEditors) this.draw(editor);
        }
      }),
    ];
  }

  dispose(): void {
    for (const timer of this.timers.values()) clearTimeout(timer);
    for (const each of [...this.types.values(), ...this.subscriptions]) each.dispose();
  }

  /** The function that a line is in, as far as costs tell: between its first and its last hot line. */
  functionAt(document: vscode.TextDocument, line: number): string | undefined {
    const lines = this.marks.get(document.uri.toString())?.lines ?? [];
    const exact = lines.find((each) => each.line === line)?.function;
    if (exact !== undefined && exact !== null) return exact;
    const above = lines.findLast((each) => each.line < line)?.function;
    const below = lines.find((each) => each.line > line)?.function;
    return above === below ? (above ?? undefined) : undefined;
  }

  private lookAgain(): void {
    for (const { document } of vscode.window.visibleTextEditors) this.schedule(document, 0);
  }

  private schedule(document: vscode.TextDocument, wait: number): void {
    if (document.uri.scheme !== "file") return;
    const key = document.uri.toString();
    clearTimeout(this.timers.get(key));
    this.timers.set(
      key,
      setTimeout(() => {
        this.timers.delete(key);
        void this.fetch(document);
      }, wait),
    );
  }

  private async fetch(document: vscode.TextDocument): Promise<void> {
    const marks = await this.client.ask(protocol.heat, { textDocument: { uri: this.client.uri(document) } });
    // Edited meanwhile: that edit has its own timer.
    if (marks !== undefined && marks.lines.length > 0 && marks.version !== document.version) return;
    this.marks.set(document.uri.toString(), marks ?? { version: document.version, lines: [] });
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document === document) this.draw(editor);
    }
    this.changes.fire(document);
  }

  private makeTypes(): void {
    for (const type of this.types.values()) type.dispose();
    const kinds: Kind[] = [...LEVELS, "better"];
    this.types = new Map(kinds.map((kind) => [kind, vscode.window.createTextEditorDecorationType(look(kind))]));
  }

  private draw(editor: vscode.TextEditor): void {
    const lines = this.marks.get(editor.document.uri.toString())?.lines ?? [];
    for (const [kind, type] of this.types) {
      editor.setDecorations(type, lines.filter((each) => kindOf(each) === kind).map(({ line }) => new vscode.Range(line, 0, line, 0)));
    }
    const isShown = lines.length > 0 && isInColumn(editor.document);
    editor.setDecorations(this.column, isShown ? cells(editor.document, lines) : []);
  }
}

function kindOf({ level, isBetter }: HeatLine): Kind | undefined {
  return isBetter ? "better" : LEVELS.find((each) => each === level);
}

function look(kind: Kind): vscode.DecorationRenderOptions {
  const [color, tint] = kind === "better" ? ["perflens.better", "perflens.tintBetter"] : [`perflens.heat${kind}`, `perflens.tint${kind}`];
  const isHot = kind === "better" || kind >= HOT;
  return {
    isWholeLine: true,
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    ...(settings.own<boolean>("heat.bar") && { borderStyle: "solid", borderWidth: BAR, borderColor: new vscode.ThemeColor(color) }),
    ...(isHot && settings.own<boolean>("heat.overviewRuler") && { overviewRulerColor: new vscode.ThemeColor(color), overviewRulerLane: vscode.OverviewRulerLane.Right }),
    ...(isHot && settings.own<boolean>("heat.background") && { backgroundColor: new vscode.ThemeColor(tint) }),
  };
}

/** A cell before every line, also before those without a cost: that is what makes it a column. */
function cells(document: vscode.TextDocument, lines: HeatLine[]): vscode.DecorationOptions[] {
  const costs = new Map(lines.map((each) => [each.line, each]));
  // Differences are wider than shares.
  const shares = Math.max(5, ...lines.map(({ share }) => share.length));
  const isTinted = settings.own<boolean>("heat.background");
  return Array.from({ length: document.lineCount }, (_, line) => {
    const cost = costs.get(line);
    const kind = cost && kindOf(cost);
    const tint = isTinted ? undefined : kind === "better" ? "perflens.tintBetter" : kind !== undefined && kind >= HOT ? `perflens.tint${kind}` : undefined;
    return {
      range: new vscode.Range(line, 0, line, 0),
      renderOptions: {
        before: {
          contentText: cost ? cellText(cost, shares) : "\u00a0",
          width: `${shares + 11}ch`,
          margin: "0 1ch 0 0",
          color: new vscode.ThemeColor("editorInlayHint.foreground"),
          ...(tint !== undefined && { backgroundColor: new vscode.ThemeColor(tint) }),
        },
      },
    };
  });
}

const BLOCKS = ["", "▂", "▄", "▆", "█"];

/** Block, share and value below each other; no-break spaces, since others are swallowed. */
function cellText({ level, share, value }: HeatLine, shares: number): string {
  const block = (BLOCKS[level] ?? "") || " ";
  return `${block} ${share.padStart(shares)} ${value.padStart(7)}`.replaceAll(" ", "\u00a0");
}
