// What the pages and the extension say to each other.

import type { Flamegraph } from "../protocol";

/** To the flame graph. */
export type ToPage =
  | { kind: "graph"; graph: Flamegraph | undefined }
  /** The function the cursor is in, if any. */
  | { kind: "cursor"; name: string | undefined };

/** From the flame graph. */
export type FromPage =
  | { kind: "ready" }
  /** Position in the list of functions. */
  | { kind: "open"; function: number };

/** From the page of a profile. */
export interface FromProfilePage {
  command: "openThisProfile" | "compareWithThisProfile";
}
