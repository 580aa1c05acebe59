// Asks for the arguments of a command, one after the other, as the server's table describes them.
// For commands without a dialog of their own, so that a new command of the server needs none.

import * as vscode from "vscode";
import server from "./generated/server.json";

type Takes = string | { number: { min: number; max: number } } | { choice: string[] };

interface Argument {
  name: string;
  takes: Takes;
  required: boolean;
  doc: string;
  example: string;
}

export interface ServerCommand {
  name: string;
  title: string;
  doc: string;
  arguments: Argument[];
}

export const COMMANDS = server.commands as ServerCommand[];

/** The arguments, or `undefined` when somebody gave up. What is known already is not asked for. */
export async function askFor(command: ServerCommand, known: object): Promise<object | undefined> {
  const given: Record<string, unknown> = { ...known };
  for (const argument of command.arguments) {
    if (!argument.required || argument.name in given) continue;
    const value = await askOne(command.title, argument);
    if (value === undefined) return undefined;
    given[argument.name] = value;
  }
  return given;
}

async function askOne(title: string, { takes, doc, example }: Argument): Promise<unknown> {
  const common = { title, placeHolder: doc };
  if (takes === "flag") {
    const picked = await vscode.window.showQuickPick(["Yes", "No"], common);
    return picked === undefined ? undefined : picked === "Yes";
  }
  if (typeof takes === "object" && "choice" in takes) return vscode.window.showQuickPick(takes.choice, common);
  const range = typeof takes === "object" ? takes.number : undefined;
  const text = await vscode.window.showInputBox({
    title,
    prompt: doc,
    placeHolder: example,
    validateInput: (value) => (range && !isWithin(value, range) ? `A whole number from ${range.min} to ${range.max}` : undefined),
  });
  if (text === undefined || text === "") return undefined;
  if (range) return Number(text);
  return takes === "filters" ? text.split(",").map((each) => each.trim()) : text;
}

function isWithin(text: string, { min, max }: { min: number; max: number }): boolean {
  const value = Number(text);
  return text === "" || (Number.isInteger(value) && value >= min && value <= max);
}
