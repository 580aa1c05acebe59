// The editor, as a page sees it.

interface Editor {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare function acquireVsCodeApi(): Editor;

export const editor = acquireVsCodeApi();
