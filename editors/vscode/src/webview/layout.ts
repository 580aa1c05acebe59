// Where the boxes of a flame graph are: a pure function of the graph and of what fills the width.
//
// Callers stand above what they call, siblings from the widest to the narrowest. Widths are shares
// of the page, 0 to 1; boxes that would be narrower than a hair are left out.

import type { Flamegraph } from "../protocol";

export interface Placed {
  /** Position in the list of boxes. */
  box: number;
  depth: number;
  x: number;
  width: number;
  /** A caller of what fills the width. */
  isAbove: boolean;
}

export class Layout {
  /** Per box those below it, the widest first. */
  readonly children: number[][];
  private readonly roots: number[] = [];

  constructor(readonly graph: Flamegraph) {
    this.children = graph.boxes.map(() => []);
    graph.boxes.forEach(({ parent }, at) => this.below(parent).push(at));
    // Boxes come by falling width, but a caller's are not sorted by name.
    for (const list of [this.roots, ...this.children]) list.sort((a, b) => this.value(b) - this.value(a) || a - b);
  }

  /** What is below a box; of none, the outermost. */
  below(box: number | null): number[] {
    return box === null ? this.roots : (this.children[box] ?? []);
  }

  value(box: number): number {
    return this.graph.boxes[box]?.value ?? 0;
  }

  parent(box: number): number | null {
    return this.graph.boxes[box]?.parent ?? null;
  }

  /** Places everything that shows when `zoomed` fills the width. */
  place(zoomed: number | null, hair: number): Placed[] {
    const placed: Placed[] = [];
    const above: number[] = [];
    for (let at = zoomed === null ? null : this.parent(zoomed); at !== null; at = this.parent(at)) above.unshift(at);
    above.forEach((box, depth) => placed.push({ box, depth, x: 0, width: 1, isAbove: true }));
    const whole = zoomed === null ? this.graph.total : this.value(zoomed);
    const add = (boxes: number[], depth: number, from: number) => {
      let x = from;
      for (const box of boxes) {
        const width = this.value(box) / whole;
        if (width < hair) break;
        placed.push({ box, depth, x, width, isAbove: false });
        add(this.below(box), depth + 1, x);
        x += width;
      }
    };
    if (whole > 0) add(zoomed === null ? this.roots : [zoomed], above.length, 0);
    return placed;
  }

  /** Σ of the boxes that a test accepts, each sample once: boxes below one that counts don't count again. */
  sum(accepts: (box: number) => boolean): number {
    let sum = 0;
    const add = (boxes: number[]) => {
      for (const box of boxes) {
        if (accepts(box)) sum += this.value(box);
        else add(this.below(box));
      }
    };
    add(this.roots);
    return sum;
  }
}
