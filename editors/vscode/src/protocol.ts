// The requests of perflens that the protocol does not have, one to one as docs/lsp-extensions.md
// describes them. Lines and columns count from 0 where the page says "now", from 1 where it speaks
// of the profile.

import { NotificationType, RequestType, type Range, type TextDocumentIdentifier } from "vscode-languageclient/node";

export interface HeatLine {
  line: number;
  level: number;
  isBetter: boolean;
  share: string;
  value: string;
  function: string | null;
}

export interface Heat {
  version: number;
  lines: HeatLine[];
}

export interface FileCost {
  uri: string;
  level: number;
  percent: string;
  label: string;
}

export type Subject = "line" | "function";

export interface Hotspot {
  rank: number;
  function: string;
  file: string;
  uri: string | null;
  range: Range;
  line: number;
  title: string;
  description: string;
  label: string;
}

export interface Package {
  title: string;
  description: string;
}

export interface Neighbour {
  name: string;
  file: string;
  uri: string | null;
  line: number | null;
  label: string;
}

export interface Callers {
  callers: Neighbour[];
  callees: Neighbour[];
}

export interface FlameFunction {
  name: string;
  place: string;
  uri: string | null;
  line: number | null;
  isOwn: boolean;
}

export interface FlameBox {
  parent: number | null;
  function: number;
  value: number;
  label: string;
  /** In a comparison. */
  change?: { level: number; isBetter: boolean };
}

export interface Flamegraph {
  title: string;
  origin: string;
  total: number;
  functions: FlameFunction[];
  boxes: FlameBox[];
  omitted: number;
}

export interface Status {
  folder: string;
  state: "none" | "loading" | "loaded" | "comparing" | "error";
  text: string;
  icon: string;
  details: string[];
  origin: string | null;
  valueType: string | null;
  valueTypes: string[];
  ignored: string[];
}

export interface Query {
  profile: string | null;
  base: string | null;
  valueType: string | null;
  filters: string[];
}

interface AtDocument {
  textDocument: TextDocumentIdentifier;
}

export const changed = new NotificationType<object>("perflens/changed");
export const heat = new RequestType<AtDocument, Heat, void>("perflens/heat");
export const files = new RequestType<object, FileCost[], void>("perflens/files");
export const hotspots = new RequestType<{ by?: Subject; top?: number }, Hotspot[], void>("perflens/hotspots");
export const packages = new RequestType<{ top?: number }, Package[], void>("perflens/packages");
export const callers = new RequestType<AtDocument & { line: number; of?: Subject }, Callers, void>("perflens/callers");
export const flamegraph = new RequestType<{ top?: number }, Flamegraph | null, void>("perflens/flamegraph");
export const status = new RequestType<object, Status[], void>("perflens/status");
export const query = new RequestType<object, Query, void>("perflens/query");
