// What can be said about the extension without an editor.

import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, parse } from "../src/link";
import { short, shortTitle } from "../src/names";
import type { Flamegraph } from "../src/protocol";
import { selector } from "../src/selector";
import { Layout } from "../src/webview/layout";

test("links name what is in the workspace", () => {
  assert.deepEqual(parse("/show", "profile=a%2Fcpu.pb.gz&type=cpu&filter=fn~x&filter=thread%3Dmain&file=src/main.rs&line=17"), {
    profile: "a/cpu.pb.gz",
    type: "cpu",
    filters: ["fn~x", "thread=main"],
    file: "src/main.rs",
    line: 17,
  });
  assert.equal(
    describe({ profile: "cpu.pb.gz", filters: ["fn~x"], file: "src/main.rs", line: 17 }),
    "Opens the profile cpu.pb.gz of this workspace.\nCounts only fn~x.\nShows src/main.rs, line 17.",
  );
});

test("links that could lead anywhere else are refused", () => {
  const refused = [
    "",
    "type=cpu",
    "profile=",
    "profile=/etc/passwd",
    "profile=../cpu.pb.gz",
    "profile=a/../../cpu.pb.gz",
    "profile=https://example.com/cpu.pb.gz",
    "profile=C:%5Ccpu.pb.gz",
    "profile=%5C%5Chost%5Cshare",
    "profile=//host/share",
    "profile=cpu.pb.gz&host=example.com",
    "profile=cpu.pb.gz&token=abc",
    "profile=cpu%0A.pb.gz",
    "profile=cpu%E2%80%AE.pb.gz",
    `profile=${"a".repeat(501)}`,
    "file=a.rs&line=0",
    "file=a.rs&line=-1",
    "file=a.rs&line=1e3",
  ];
  for (const query of refused) assert.ok(parse("/show", query) instanceof Error, query);
  assert.ok(parse("/run", "profile=cpu.pb.gz") instanceof Error);
});

test("names lose the folders of their package and nothing else", () => {
  const names = {
    "example.com/logstats.parse": "logstats.parse",
    "main.(*T).Run": "main.(*T).Run",
    "a/b.F[go.shape.struct { c/d.X int }]": "b.F[go.shape.struct { c/d.X int }]",
    "core::iter::Iterator::count": "core::iter::Iterator::count",
    "": "",
  };
  for (const [name, expected] of Object.entries(names)) assert.equal(short(name), expected);
  assert.equal(shortTitle("\u20079.6%  example.com/a.b +2"), "\u20079.6%  a.b +2");
  assert.equal(shortTitle("12.6%"), "12.6%");
});

/** main 10 > (f 6 > f 2, g 3); start 2. */
const graph: Flamegraph = {
  title: "",
  origin: "",
  total: 12,
  omitted: 0,
  functions: ["main", "f", "g", "start"].map((name) => ({ name, place: "", uri: null, line: null, isOwn: true })),
  boxes: [
    { parent: null, function: 0, value: 10, label: "" },
    { parent: 0, function: 1, value: 6, label: "" },
    { parent: 0, function: 2, value: 3, label: "" },
    { parent: 1, function: 1, value: 2, label: "" },
    { parent: null, function: 3, value: 2, label: "" },
  ],
};

test("boxes stand below their callers, the widest first", () => {
  const round = (zoomed: number | null, hair = 0) =>
    new Layout(graph).place(zoomed, hair).map(({ box, depth, x, width, isAbove }) => [box, depth, +x.toFixed(3), +width.toFixed(3), isAbove]);
  assert.deepEqual(round(null), [
    [0, 0, 0, 0.833, false],
    [1, 1, 0, 0.5, false],
    [3, 2, 0, 0.167, false],
    [2, 1, 0.5, 0.25, false],
    [4, 0, 0.833, 0.167, false],
  ]);
  assert.deepEqual(round(1), [
    [0, 0, 0, 1, true],
    [1, 1, 0, 1, false],
    [3, 2, 0, 0.333, false],
  ]);
  assert.deepEqual(round(null, 0.3).map(([box]) => box), [0, 1]);
});

test("what is found counts each sample once", () => {
  const layout = new Layout(graph);
  const isNamed = (name: string) => (box: number) => layout.graph.functions[layout.graph.boxes[box]?.function ?? -1]?.name === name;
  assert.equal(layout.sum(isNamed("f")), 6);
  assert.equal(layout.sum(isNamed("main")), 10);
  assert.equal(layout.sum(isNamed("none")), 0);
});

test("values of labels are a query, whatever is in them", () => {
  assert.equal(selector("a:b:c:d:e", new Map()), "a:b:c:d:e");
  assert.equal(selector("a:b:c:d:e", new Map([["job", []]])), "a:b:c:d:e");
  assert.equal(selector("a:b:c:d:e", new Map([["job", ["api"]]])), 'a:b:c:d:e{job="api"}');
  const several = new Map([["job", ["a.b", "c|d"]], ["pod", ['x"\\']]]);
  assert.equal(selector("a:b:c:d:e", several), String.raw`a:b:c:d:e{job=~"a\\.b|c\\|d",pod="x\"\\"}`);
});
