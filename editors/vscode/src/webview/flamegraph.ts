// The page of the flame graph beside the code: it has its graph from the extension.

import { flameView } from "./flameView";
import type { FromPage, ToPage } from "./messages";
import { editor } from "./vscode";

interface Saved {
  search?: string;
}

const send = (message: FromPage) => editor.postMessage(message);
const view = flameView(document.getElementById("flamegraph") ?? document.body, {
  open: (at) => send({ kind: "open", function: at }),
  searched: () => ((editor.getState() ?? {}) as Saved).search ?? "",
  remember: (search) => editor.setState({ search } satisfies Saved),
});

window.addEventListener("message", ({ data }: MessageEvent<ToPage>) => {
  if (data.kind === "graph") view.show(data.graph);
  else view.follow(data.name);
});

send({ kind: "ready" });
