// Bundles the flame graph for `perflens report --format html`: the same view as beside the code, as
// one script and one style that the program carries. They are committed, so that building the program
// needs no Node.js.
//
// Usage: npm run page [-- --check]      --check writes nothing, and fails where they are old
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";

const here = path.resolve(import.meta.dirname, "..");
const folder = path.join(here, "../../profiler-core/src/view/page");
const { outputFiles } = await build({
  absWorkingDir: here,
  bundle: true,
  minify: true,
  write: false,
  outdir: folder,
  charset: "utf8",
  legalComments: "none",
  entryPoints: { flamegraph: "src/webview/report.ts", "flamegraph-style": "src/webview/flameView.css" },
  platform: "browser",
  format: "iife",
  target: "es2022",
});
mkdirSync(folder, { recursive: true });
for (const { path: file, text } of outputFiles) {
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) {
    console.error(`${path.basename(file)} is not what the sources make; npm run page mends it`);
    process.exitCode = 1;
  }
}
