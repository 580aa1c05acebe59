// Puts the parts together. Each surface is a module; none knows another that it doesn't need.

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import * as assistants from "./assistants";
import { Badges } from "./badges";
import { Client } from "./client";
import { hasOwnWay, open, register as registerCommands, runByHand, type Parts } from "./commands";
import { profileOfDemo } from "./demo";
import { Flamegraphs } from "./flamegraph";
import { Heat } from "./heat";
import { Hints } from "./hints";
import { HotspotTree } from "./hotspots";
import * as hover from "./hover";
import * as links from "./links";
import * as profileEditor from "./profileEditor";
import { Profiles } from "./profiles";
import * as settings from "./settings";
import { StatusBar } from "./status";
import { Texts } from "./texts";

let running: Client | undefined;

export async function activate(extension: vscode.ExtensionContext): Promise<void> {
  const hints = new Hints(() => client);
  const middleware: Middleware = {
    ...hints.middleware,
    ...hover.middleware((name) => client.has(name)),
    // Lenses and actions carry commands of the server; some have a better way here.
    executeCommand: (command, args: unknown[], next): unknown => {
      const name = command.replace("perflens.", "");
      return hasOwnWay(name) ? runByHand(parts, name, args[0]) : next(command, args);
    },
  };
  const client = new Client(extension, middleware);
  running = client;
  const heat = new Heat(client);
  const tree = new HotspotTree(client);
  const statusBar = new StatusBar(client);
  const parts: Parts = {
    extension,
    client,
    hints,
    tree,
    statusBar,
    flamegraphs: new Flamegraphs(extension, client, heat),
    profiles: new Profiles(extension.workspaceState),
    texts: new Texts(),
  };
  extension.subscriptions.push(
    ...registerCommands(parts),
    links.register((file, type) => open(parts, file, type), (filters) => client.run("setFilter", { filters })),
    profileEditor.register(extension, client),
    assistants.register(client),
    statusBar.onDidChange((status) => tree.describe(status)),
    new Badges(client),
    parts.flamegraphs,
    parts.texts,
    statusBar,
    tree,
    heat,
    hints,
    client,
  );
  await client.start();
  await reopen(parts);
}

export async function deactivate(): Promise<void> {
  await running?.stop();
}

/** Brings back what was open when the window was closed, unless settings name something. */
async function reopen(parts: Parts): Promise<void> {
  const ofDemo = await profileOfDemo(parts.extension);
  const opened = parts.profiles.open ?? (ofDemo === undefined ? undefined : { path: ofDemo });
  if (opened === undefined || !settings.own<boolean>("reopen")) return;
  const status = await parts.statusBar.fetch();
  if (status?.state === "none") await open(parts, opened.path, opened.type);
}
