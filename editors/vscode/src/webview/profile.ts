// The page of a profile's file: two buttons.

import type { FromProfilePage } from "./messages";
import { editor } from "./vscode";

for (const button of document.querySelectorAll("button")) {
  const command = button.dataset["command"] as FromProfilePage["command"];
  button.addEventListener("click", () => editor.postMessage({ command } satisfies FromProfilePage));
}
