// Finds the program `perflens`, and proves that it is one this extension can talk to.
//
// The setting wins and is never replaced by something else; without it, the program that came with
// the extension, then the PATH, then where cargo installs programs.

import { execFile } from "node:child_process";
import { chmod } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";

export const SETTING = "perflens.server.path";
const PATIENCE_MS = 10_000;

export interface Program {
  file: string;
  version: string;
}

/** There is none; the message is for the user and says what to do. */
export class NoProgram extends Error {}

export async function find(extension: vscode.ExtensionContext): Promise<Program> {
  const wanted = packageVersion(extension);
  const set = vscode.workspace.getConfiguration().get<string>(SETTING, "").trim();
  if (set !== "") {
    const file = set.replace(/^~(?=[\\/])/, homedir());
    const found = await version(file);
    if (found instanceof Error) {
      throw new NoProgram(`The setting ${SETTING} names ${file}, which does not start: ${found.message}`);
    }
    if (!fits(found, wanted)) {
      throw new NoProgram(
        `The setting ${SETTING} names perflens ${found}, and this extension is for ${wanted}. ` +
          "Name another, or clear the setting.",
      );
    }
    return { file, version: found };
  }
  const seen: string[] = [];
  for (const file of await candidates(extension)) {
    const found = await version(file);
    if (found instanceof Error) continue;
    if (fits(found, wanted)) return { file, version: found };
    seen.push(`${file} is ${found}`);
  }
  const others = seen.length === 0 ? "" : ` (${seen.join("; ")})`;
  throw new NoProgram(
    `The program perflens ${wanted} was not found${others}. Install it, or name it in the setting ${SETTING}.`,
  );
}

async function candidates(extension: vscode.ExtensionContext): Promise<string[]> {
  const name = process.platform === "win32" ? "perflens.exe" : "perflens";
  const bundled = extension.asAbsolutePath(path.join("server", name));
  // Archives packed on Windows have no execute bit; where there is no such file, nothing is lost.
  await chmod(bundled, 0o755).catch(() => undefined);
  return [bundled, name, path.join(process.env["CARGO_HOME"] ?? path.join(homedir(), ".cargo"), "bin", name)];
}

/** The version a program says it has, or why it doesn't say. */
async function version(file: string): Promise<string | Error> {
  try {
    // Where programs are also looked for in the current folder, that must not be the workspace.
    const { stdout } = await promisify(execFile)(file, ["--version"], { timeout: PATIENCE_MS, cwd: homedir() });
    const found = /^perflens (\d+\.\d+\.\d+\S*)/.exec(stdout)?.[1];
    return found ?? new Error("it is another program");
  } catch (problem) {
    if (!(problem instanceof Error)) return new Error(String(problem));
    return (problem as NodeJS.ErrnoException).code === "ENOENT" ? new Error("there is no such program") : problem;
  }
}

/** Whether versions understand each other: the same first number that is not 0. */
export function fits(found: string, wanted: string): boolean {
  const [major, minor] = found.split(".");
  const [wantedMajor, wantedMinor] = wanted.split(".");
  return major === wantedMajor && (major !== "0" || minor === wantedMinor);
}

function packageVersion(extension: vscode.ExtensionContext): string {
  return (extension.extension.packageJSON as { version: string }).version;
}
