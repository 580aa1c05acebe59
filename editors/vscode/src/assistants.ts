// Tells VS Code of the tool server for assistants, `perflens mcp`, where its version knows such servers
// (1.101). It runs only when an assistant uses it; what it may read is its own matter, and the user's.

import * as vscode from "vscode";
import type { Client } from "./client";

const ID = "perflens.mcp";

// Newer than the types that this extension is built with.
interface Provider {
  onDidChangeMcpServerDefinitions: vscode.Event<void>;
  provideMcpServerDefinitions(): object[];
}
type Register = (id: string, provider: Provider) => vscode.Disposable;
type Definition = new (label: string, command: string, args: string[], env: object, version: string) => object;

/** Registers the server; nothing where VS Code is older. */
export function register(client: Client): vscode.Disposable {
  const { registerMcpServerDefinitionProvider } = vscode.lm as { registerMcpServerDefinitionProvider?: Register };
  const { McpStdioServerDefinition } = vscode as unknown as { McpStdioServerDefinition?: Definition };
  if (typeof registerMcpServerDefinitionProvider !== "function" || McpStdioServerDefinition === undefined) {
    return new vscode.Disposable(() => undefined);
  }
  const changes = new vscode.EventEmitter<void>();
  let known = "";
  const definitions = (): object[] => servers(client).map(({ label, command, args, version }) => new McpStdioServerDefinition(label, command, args, {}, version));
  // The server's news are many; what is registered changes with the program and the folders only.
  const look = (): void => {
    const now = JSON.stringify(servers(client));
    if (now === known) return;
    known = now;
    changes.fire();
  };
  return vscode.Disposable.from(
    changes,
    client.onDidChange(look),
    vscode.workspace.onDidChangeWorkspaceFolders(look),
    registerMcpServerDefinitionProvider(ID, {
      onDidChangeMcpServerDefinitions: changes.event,
      provideMcpServerDefinitions: definitions,
    }),
  );
}

interface Server {
  label: string;
  command: string;
  args: string[];
  version: string;
}

/** One per folder, as each has a view of its own. */
function servers(client: Client): Server[] {
  const program = client.program;
  if (program === undefined) return [];
  const folders = (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === "file");
  return folders.map((folder) => ({
    label: folders.length === 1 ? "perflens" : `perflens (${folder.name})`,
    command: program.file,
    args: ["mcp", "--workspace", folder.uri.fsPath],
    version: program.version,
  }));
}
