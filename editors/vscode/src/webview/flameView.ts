// Draws a flame graph, and answers mouse and keys: a click zooms, a double click leads to the
// source, typing searches. Everything that comes from a profile is set as text.
//
// Where the graph comes from and what opening a source means is its host's: the editor, or the page
// of a report.

import { short } from "../names";
import type { Flamegraph } from "../protocol";
import { Layout, type Placed } from "./layout";

export interface Host {
  /** Shows the source of a function, given by its position in the list. */
  open(at: number): void;
  /** What was searched last. */
  searched(): string;
  remember(search: string): void;
}

export interface View {
  show(graph: Flamegraph | undefined): void;
  /** Marks a function, the cursor's. */
  follow(name: string | undefined): void;
}

const ROW = 20;
const HAIR_PX = 1.5;
/** Narrower boxes have no room for a letter. */
const LABEL_PX = 26;
/** From which share of everything each level of heat begins. */
const LEVELS = [0.01, 0.03, 0.1, 0.3];

export function flameView(root: HTMLElement, host: Host): View {
  const page = build(root);
  let layout: Layout | undefined;
  let zoomed: number | null = null;
  let selected: number | null = null;
  let cursorName: string | undefined;
  let drawn = new Map<number, HTMLElement>();

  const boxOf = (at: number) => layout?.graph.boxes[at];
  const functionOf = (at: number) => layout?.graph.functions[boxOf(at)?.function ?? -1];

  // ---- drawing

  function draw(): void {
    const width = page.boxes.clientWidth;
    const placed = layout?.place(zoomed, HAIR_PX / Math.max(width, 1)) ?? [];
    const depth = Math.max(0, ...placed.map((each) => each.depth)) + 1;
    drawn = new Map();
    const canvas = document.createElement("div");
    canvas.className = "canvas";
    canvas.style.height = `${depth * ROW}px`;
    for (const each of placed) canvas.append(drawBox(each, width));
    page.boxes.replaceChildren(canvas);
    page.reset.disabled = zoomed === null;
    mark();
  }

  function drawBox({ box, depth, x, width, isAbove }: Placed, pageWidth: number): HTMLElement {
    const own = functionOf(box);
    const label = boxOf(box)?.label ?? "";
    const element = document.createElement("div");
    element.className = `box ${own?.isOwn === true ? "own" : "other"} ${look(box)}${isAbove ? " above" : ""}`;
    element.dataset["box"] = String(box);
    element.style.left = `${x * 100}%`;
    element.style.width = `${width * 100}%`;
    element.style.top = `${depth * ROW}px`;
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-label", `${own?.name ?? ""}, ${label}`);
    element.setAttribute("aria-level", String(depth + 1));
    // Colour alone says nothing to some.
    const sign = boxOf(box)?.change === undefined ? "" : `${/^[▲▼≈]/.exec(label)?.[0] ?? ""} `.trimStart();
    if (width * pageWidth >= LABEL_PX) element.textContent = sign + short(own?.name ?? "");
    drawn.set(box, element);
    return element;
  }

  /** How hot code of the workspace is; in a comparison, what became of any code. */
  function look(box: number): string {
    const change = boxOf(box)?.change;
    if (change !== undefined) return change.isBetter ? "better" : change.level > 0 ? `heat${change.level}` : "same";
    return functionOf(box)?.isOwn === true ? `heat${level(box)}` : "";
  }

  function level(box: number): number {
    const share = (layout?.value(box) ?? 0) / (layout?.graph.total ?? 1);
    return LEVELS.filter((from) => share >= from).length;
  }

  /** What is found, selected, and of the cursor's function. */
  function mark(): void {
    const wanted = page.search.value.trim().toLowerCase();
    const isFound = (box: number) => wanted !== "" && (functionOf(box)?.name.toLowerCase().includes(wanted) ?? false);
    for (const [box, element] of drawn) {
      element.classList.toggle("found", isFound(box));
      element.classList.toggle("missed", wanted !== "" && !isFound(box));
      element.classList.toggle("cursor", cursorName !== undefined && functionOf(box)?.name === cursorName);
      element.classList.toggle("selected", box === selected);
      element.setAttribute("aria-selected", String(box === selected));
    }
    page.found.textContent = wanted === "" ? "" : percent(layout?.sum(isFound) ?? 0);
    describe(selected);
  }

  /** One decimal, as everywhere. */
  function percent(value: number): string {
    const share = value / (layout?.graph.total ?? 1);
    return `${share >= 0.9995 ? "100" : (share * 100).toFixed(1)}% found`;
  }

  function describe(box: number | null): void {
    const own = box === null ? undefined : functionOf(box);
    page.name.textContent = own?.name ?? "";
    page.cost.textContent = box === null ? "" : (boxOf(box)?.label ?? "");
    page.place.textContent = own?.place ?? "";
    page.place.classList.toggle("dead", own?.uri == null);
    page.hint.textContent = own === undefined ? "Click zooms, double click opens the source, arrows walk, / searches" : "";
  }

  // ---- doing

  function zoom(box: number | null): void {
    zoomed = box;
    selected = box ?? selected;
    draw();
    drawn.get(selected ?? -1)?.scrollIntoView({ block: "nearest" });
  }

  function select(box: number | null | undefined): void {
    if (box === undefined) return;
    selected = box;
    mark();
    drawn.get(box ?? -1)?.scrollIntoView({ block: "nearest" });
  }

  function openSource(box: number | null): void {
    const at = box === null ? undefined : boxOf(box)?.function;
    if (at !== undefined && layout?.graph.functions[at]?.uri != null) host.open(at);
  }

  function show(graph: Flamegraph | undefined): void {
    layout = graph && new Layout(graph);
    zoomed = null;
    selected = null;
    page.title.textContent = graph === undefined ? "No profile is open" : `${graph.title} · ${graph.origin}`;
    draw();
  }

  /** A box beside the selected one. */
  function sibling(step: number): number | undefined {
    if (layout === undefined || selected === null) return undefined;
    const all = layout.below(layout.parent(selected));
    const next = all[all.indexOf(selected) + step];
    return next !== undefined && drawn.has(next) ? next : undefined;
  }

  const KEYS: Record<string, () => void> = {
    ArrowDown: () => select(selected === null ? layout?.below(null)[0] : layout?.below(selected)[0]),
    ArrowUp: () => select(selected === null ? undefined : (layout?.parent(selected) ?? undefined)),
    ArrowRight: () => select(sibling(1)),
    ArrowLeft: () => select(sibling(-1)),
    Enter: () => zoom(selected),
    o: () => openSource(selected),
    Escape: () => zoom(null),
    "/": () => page.search.focus(),
  };

  const boxAt = (target: EventTarget | null) => {
    const found = target instanceof Element ? target.closest<HTMLElement>(".box") : null;
    return found === null ? null : Number(found.dataset["box"]);
  };

  page.boxes.addEventListener("click", ({ target, ctrlKey, metaKey }) => {
    const box = boxAt(target);
    if (box === null) return;
    if (ctrlKey || metaKey) openSource(box);
    else zoom(box);
  });
  page.boxes.addEventListener("dblclick", ({ target }) => openSource(boxAt(target)));
  page.boxes.addEventListener("mousemove", ({ target }) => describe(boxAt(target) ?? selected));
  page.boxes.addEventListener("mouseleave", () => describe(selected));
  page.boxes.addEventListener("keydown", (event) => {
    const key = KEYS[event.key];
    if (key === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    key();
  });
  page.search.addEventListener("input", () => {
    host.remember(page.search.value);
    mark();
  });
  page.search.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" && key !== "Enter") return;
    if (key === "Escape") page.search.value = "";
    page.boxes.focus();
    mark();
  });
  page.reset.addEventListener("click", () => zoom(null));
  page.place.addEventListener("click", (event) => {
    event.preventDefault();
    openSource(selected);
  });
  new ResizeObserver(() => draw()).observe(page.boxes);
  page.search.value = host.searched();
  return {
    show,
    follow(name) {
      cursorName = name;
      mark();
    },
  };
}

function build(root: HTMLElement) {
  const element = <K extends keyof HTMLElementTagNameMap>(name: K, className: string, parent: HTMLElement) => {
    const made = document.createElement(name);
    made.className = className;
    parent.append(made);
    return made;
  };
  const bar = element("header", "bar", root);
  const title = element("span", "title", bar);
  const found = element("span", "found", bar);
  const search = element("input", "search", bar);
  search.type = "search";
  search.placeholder = "Search functions";
  search.setAttribute("aria-label", "Search functions");
  const reset = element("button", "reset", bar);
  reset.textContent = "Reset zoom";
  const boxes = element("main", "boxes", root);
  boxes.tabIndex = 0;
  boxes.setAttribute("role", "tree");
  boxes.setAttribute("aria-label", "Flame graph");
  const details = element("footer", "details", root);
  const name = element("span", "name", details);
  const cost = element("span", "cost", details);
  const place = element("a", "place", details);
  place.href = "#";
  const hint = element("span", "hint", details);
  return { title, found, search, reset, boxes, name, cost, place, hint };
}
