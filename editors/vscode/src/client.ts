// The language client and its life: started once per window, started again when asked.
//
// Everybody else asks the server through here, and is told here when to ask again. What the server
// shows by itself through the protocol needs nothing more than this file.

import * as vscode from "vscode";
import {
  ExecuteCommandRequest,
  LanguageClient,
  State,
  type LanguageClientOptions,
  type Middleware,
  type RequestType,
  type StaticFeature,
} from "vscode-languageclient/node";
import * as program from "./program";
import * as protocol from "./protocol";
import * as settings from "./settings";

/** Commands that links in hovers may run. Nothing else is ever run by a link. */
export const LINKED = ["showCallers", "showFlamegraph", "nextHotspot", "copyForAI"].map((name) => `perflens.ui.${name}`);

export class Client implements vscode.Disposable {
  /** Its log: the server's and the extension's. */
  readonly output = vscode.window.createOutputChannel("perflens", { log: true });
  /** Which program runs, for people. */
  program: program.Program | undefined;
  /** Why none runs. */
  problem: string | undefined;
  private client: LanguageClient | undefined;
  private readonly changes = new vscode.EventEmitter<void>();
  private readonly subscriptions: vscode.Disposable[] = [];
  /** Starts and stops one after the other. */
  private turn: Promise<void> = Promise.resolve();

  /** Everything that was asked may have another answer by now. */
  readonly onDidChange = this.changes.event;

  constructor(
    private readonly extension: vscode.ExtensionContext,
    private readonly middleware: Middleware,
  ) {
    this.subscriptions.push(
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.restart()),
      settings.onChange(["server.path"], () => void this.restart()),
    );
  }

  get isRunning(): boolean {
    return this.client?.state === State.Running;
  }

  start(): Promise<void> {
    return this.next(() => this.begin());
  }

  restart(): Promise<void> {
    return this.next(async () => {
      await this.end();
      await this.begin();
    });
  }

  stop(): Promise<void> {
    return this.next(() => this.end());
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
    this.changes.dispose();
    this.output.dispose();
  }

  /** Asks the server; `undefined` when there is none, or no answer. */
  async ask<P, R>(type: RequestType<P, R, void>, parameters: P): Promise<R | undefined> {
    if (this.client === undefined || !this.isRunning) return undefined;
    try {
      return await this.client.sendRequest<R>(type.method, parameters);
    } catch (problem) {
      this.output.debug(`${type.method}: ${String(problem)}`);
      return undefined;
    }
  }

  /** Runs a command of the server, by its name without prefix. What goes wrong, the server says itself. */
  async run(name: string, args?: object): Promise<unknown> {
    if (this.client === undefined || !this.isRunning) {
      void this.tellProblem();
      return undefined;
    }
    try {
      const command = { command: `perflens.${name}`, arguments: args === undefined ? [] : [args] };
      return await this.client.sendRequest(ExecuteCommandRequest.type, command);
    } catch (problem) {
      this.output.info(`${name}: ${String(problem)}`);
      return undefined;
    }
  }

  /** Whether the server that runs has this command. */
  has(name: string): boolean {
    const commands = this.client?.initializeResult?.capabilities.executeCommandProvider?.commands ?? [];
    return commands.includes(`perflens.${name}`);
  }

  /** An address as the server knows it. */
  uri(document: vscode.TextDocument): string {
    return this.client?.code2ProtocolConverter.asUri(document.uri) ?? document.uri.toString();
  }

  feature(method: "textDocument/inlayHint"): { getProvider(document: vscode.TextDocument): { onDidChangeInlayHints: vscode.EventEmitter<void> } | undefined } | undefined {
    return this.client?.getFeature(method);
  }

  /** Says why no server runs, with what can be done about it. */
  async tellProblem(): Promise<void> {
    const [open, log] = ["Open Settings", "Show Output"];
    const text = `perflens: ${this.problem ?? "the server is not running."}`;
    const answer = await vscode.window.showErrorMessage(text, open, log);
    if (answer === open) await vscode.commands.executeCommand("workbench.action.openSettings", program.SETTING);
    if (answer === log) this.output.show();
  }

  private next(step: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(step, step);
    return this.turn;
  }

  private async begin(): Promise<void> {
    this.problem = undefined;
    try {
      this.program = await program.find(this.extension);
    } catch (problem) {
      this.program = undefined;
      this.problem = problem instanceof Error ? problem.message : String(problem);
      this.output.error(this.problem);
      this.changes.fire();
      void this.tellProblem();
      return;
    }
    this.output.info(`perflens ${this.program.version} from ${this.program.file}`);
    const client = new LanguageClient("perflens", "perflens", { command: this.program.file, args: ["lsp"] }, this.options());
    client.registerFeature(announcement);
    client.onNotification(protocol.changed, () => this.changes.fire());
    client.onDidChangeState(() => this.changes.fire());
    this.client = client;
    try {
      await client.start();
    } catch (problem) {
      this.problem = `the server did not start: ${String(problem)}`;
      void this.tellProblem();
    }
    this.changes.fire();
  }

  private async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client?.needsStop() === true) await client.stop().catch((problem: unknown) => this.output.warn(String(problem)));
    this.changes.fire();
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: "file" }],
      outputChannel: this.output,
      initializationOptions: {
        workspaceTrusted: vscode.workspace.isTrusted,
        // Hints are drawn so close to the code that only a space keeps them apart.
        hints: { lead: true },
      },
      markdown: { isTrusted: { enabledCommands: LINKED }, supportHtml: false },
      middleware: {
        ...this.middleware,
        workspace: {
          configuration: (parameters) =>
            parameters.items.map(({ scopeUri }) => settings.ofServer(scopeUri === undefined ? undefined : vscode.Uri.parse(scopeUri))),
        },
      },
    };
  }
}

/** What this client does itself, see docs/lsp-extensions.md. */
const announcement: StaticFeature = {
  fillClientCapabilities(capabilities) {
    capabilities.experimental = {
      ...(capabilities.experimental as object | undefined),
      perflens: { followsChanges: true, showsAnswers: true, hasDialogs: true },
    };
  },
  initialize: () => undefined,
  getState: () => ({ kind: "static" }),
  clear: () => undefined,
};
