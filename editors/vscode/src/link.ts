// Links of the form `vscode://perflens.perflens/show?profile=cpu.pb.gz&file=src/main.rs&line=17`.
//
// A link comes from anywhere, so each is confirmed by a person who sees what it would do, and it can
// only name what is in the workspace: no addresses, no hosts, no tokens, no paths that lead out.

import path from "node:path";

const PATH = "/show";
const MAX_LENGTH = 500;

export interface Link {
  profile?: string;
  type?: string;
  filters: string[];
  file?: string;
  line?: number;
}

/** Reads a link; an error says what is wrong with it. */
export function parse(route: string, query: string): Link | Error {
  if (route !== PATH) return new Error(`there is no ${route}`);
  const link: Link = { filters: [] };
  for (const [key, value] of new URLSearchParams(query)) {
    if (value.length > MAX_LENGTH || hasControls(value)) return new Error(`${key} is no text to show`);
    switch (key) {
      case "profile":
      case "file":
        if (!isInside(value)) return new Error(`${key} leads out of the workspace`);
        link[key] = value;
        break;
      case "type":
        link.type = value;
        break;
      case "filter":
        link.filters.push(value);
        break;
      case "line":
        if (!/^[1-9]\d{0,8}$/.test(value)) return new Error("line is no number of a line");
        link.line = Number(value);
        break;
      default:
        return new Error(`there is no ${key}`);
    }
  }
  return link.profile === undefined && link.file === undefined ? new Error("it names neither profile nor file") : link;
}

/** A relative path that stays below where it starts, without a scheme, a drive or a host. */
function isInside(text: string): boolean {
  const isPlain = text !== "" && !text.includes(":") && !text.includes("\\") && !path.posix.isAbsolute(text);
  return isPlain && !path.posix.normalize(text).startsWith("..");
}

function hasControls(text: string): boolean {
  return /\p{Cc}|\p{Bidi_Control}/u.test(text);
}

/** What following it does, for the person who decides. */
export function describe({ profile, type, filters, file, line }: Link): string {
  return [
    profile && `Opens the profile ${profile} of this workspace${type ? `, ${type}` : ""}.`,
    filters.length > 0 && `Counts only ${filters.join(" and ")}.`,
    file && `Shows ${file}${line === undefined ? "" : `, line ${line}`}.`,
  ]
    .filter((each) => each !== undefined && each !== false && each !== "")
    .join("\n");
}
