// The list of hot spots: lines or functions by what they cause, each with its callers and callees;
// what no line of the workspace causes stands below, a row per package.

import * as vscode from "vscode";
import type { Client } from "./client";
import { short, shortTitle } from "./names";
import * as protocol from "./protocol";
import type { Hotspot, Neighbour, Package, Status, Subject } from "./protocol";

const ROWS = 50;

type Node =
  | { kind: "spot"; spot: Hotspot }
  | { kind: "neighbour"; neighbour: Neighbour; isCaller: boolean }
  | { kind: "elsewhere"; packages: Package[] }
  | { kind: "package"; row: Package };

export class HotspotTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private by: Subject = "line";
  private roots: Node[] = [];
  private status: Status | undefined;
  private readonly view: vscode.TreeView<Node>;
  private readonly changes = new vscode.EventEmitter<undefined>();
  private readonly subscriptions: vscode.Disposable[];

  readonly onDidChangeTreeData = this.changes.event;

  constructor(private readonly client: Client) {
    this.view = vscode.window.createTreeView("perflens.hotspots", { treeDataProvider: this });
    this.subscriptions = [this.changes, this.view, client.onDidChange(() => void this.fetch())];
    void vscode.commands.executeCommand("setContext", "perflens.list", this.by);
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  async list(by: Subject): Promise<void> {
    this.by = by;
    await vscode.commands.executeCommand("setContext", "perflens.list", by);
    await this.fetch();
  }

  /** Says what is listed, of what. */
  describe(status: Status | undefined): void {
    this.status = status;
    this.drawMessage();
  }

  private drawMessage(): void {
    const { status } = this;
    const isLoaded = status?.state === "loaded" || status?.state === "comparing";
    const rows = this.by === "line" ? "Lines" : "Functions";
    const words = status?.state === "loaded" ? `${rows} here` : `${rows} by change`;
    this.view.message = isLoaded && this.roots.length > 0 ? `${words}, ${status.text}` : "";
  }

  /** Marks a row without taking the focus; only where the list is visible, it opens by no other's will. */
  async reveal({ rank }: Hotspot): Promise<void> {
    const node = this.roots.find((each) => each.kind === "spot" && each.spot.rank === rank);
    if (node !== undefined && this.view.visible && this.by === "line") await this.view.reveal(node, { select: true, focus: false });
  }

  getTreeItem(node: Node): vscode.TreeItem {
    const { Collapsed, None } = vscode.TreeItemCollapsibleState;
    switch (node.kind) {
      case "spot": {
        const { title, description, uri, range, label } = node.spot;
        const item = new vscode.TreeItem(shortTitle(title), uri === null ? None : Collapsed);
        item.description = description;
        item.tooltip = label;
        return withJump(item, uri, range.start.line);
      }
      case "neighbour": {
        const { neighbour, isCaller } = node;
        const item = new vscode.TreeItem(shortNeighbour(neighbour), None);
        item.description = neighbour.file;
        item.tooltip = `${isCaller ? "called by" : "calls"} ${neighbour.label}`;
        item.iconPath = new vscode.ThemeIcon(isCaller ? "call-incoming" : "call-outgoing");
        item.accessibilityInformation = { label: item.tooltip };
        return withJump(item, neighbour.uri, (neighbour.line ?? 1) - 1);
      }
      case "elsewhere": {
        const item = new vscode.TreeItem("Elsewhere", Collapsed);
        item.description = "what no line of the workspace causes";
        item.iconPath = new vscode.ThemeIcon("package");
        return item;
      }
      case "package": {
        const item = new vscode.TreeItem(node.row.title, None);
        item.description = node.row.description;
        return item;
      }
    }
  }

  async getChildren(node?: Node): Promise<Node[]> {
    switch (node?.kind) {
      case undefined:
        return this.roots;
      case "spot":
        return this.neighbours(node.spot);
      case "elsewhere":
        return node.packages.map((row) => ({ kind: "package", row }));
      default:
        return [];
    }
  }

  getParent(): undefined {
    // Only roots are ever revealed.
    return undefined;
  }

  private async neighbours({ uri, range }: Hotspot): Promise<Node[]> {
    if (uri === null) return [];
    // The server knows the lines of documents that are open.
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
    const of = this.by;
    const parameters = { textDocument: { uri: this.client.uri(document) }, line: range.start.line, of };
    const found = await this.client.ask(protocol.callers, parameters);
    const node = (isCaller: boolean) => (neighbour: Neighbour): Node => ({ kind: "neighbour", neighbour, isCaller });
    return found === undefined ? [] : [...found.callers.map(node(true)), ...found.callees.map(node(false))];
  }

  private async fetch(): Promise<void> {
    const [spots, packages] = await Promise.all([
      this.client.ask(protocol.hotspots, { by: this.by, top: ROWS }),
      this.client.ask(protocol.packages, { top: ROWS }),
    ]);
    this.roots = (spots ?? []).map((spot) => ({ kind: "spot", spot }));
    if (packages !== undefined && packages.length > 0) this.roots.push({ kind: "elsewhere", packages });
    this.changes.fire(undefined);
    this.drawMessage();
  }
}

/** Its label ends with its name. */
function shortNeighbour({ label, name }: Neighbour): string {
  return label.endsWith(name) ? label.slice(0, label.length - name.length) + short(name) : label;
}

function withJump(item: vscode.TreeItem, uri: string | null, line: number): vscode.TreeItem {
  if (uri !== null) {
    const target = vscode.Uri.parse(uri);
    item.command = { command: "vscode.open", title: "Open", arguments: [target, { selection: new vscode.Range(line, 0, line, 0) }] };
  }
  return item;
}
