// The flame graph in the page that `perflens report --format html` writes. The page holds the graph as
// data and the source as text; a function leads to its lines on the same page.

import type { Flamegraph } from "../protocol";
import { flameView } from "./flameView";

const data = document.getElementById("flamegraph-data")?.textContent ?? "null";
const graph = (JSON.parse(data) as Flamegraph | null) ?? undefined;
const root = document.getElementById("flamegraph");

if (root !== null) {
  let search = "";
  const view = flameView(root, {
    open: (at) => {
      const target = graph?.functions[at]?.uri;
      if (target != null) location.hash = target;
    },
    searched: () => search,
    remember: (words) => (search = words),
  });
  view.show(graph);
  // A slash searches wherever the reader is, as in the editor's page.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    root.querySelector<HTMLInputElement>(".search")?.focus();
  });
}
