// Bundles the extension into dist/: one script for the editor's side, one per page, styles, and the
// demo that comes with it.
//
// Usage: npm run build [-- --watch]
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { context } from "esbuild";

const here = path.resolve(import.meta.dirname, "..");
const demo = ["go.mod", "logstats.go", "logstats_test.go", "profile.pb.gz"];
const common = { absWorkingDir: here, bundle: true, minify: true, outdir: "dist", logLevel: "info", legalComments: "none", metafile: true };
const builds = [
  { ...common, entryPoints: ["src/extension.ts"], platform: "node", format: "cjs", target: "node18", external: ["vscode"] },
  {
    ...common,
    entryPoints: ["flamegraph.ts", "flamegraph.css", "profile.ts", "profile.css"].map((name) => `src/webview/${name}`),
    platform: "browser",
    format: "iife",
    target: "es2022",
  },
];

/** The licences of what is bundled, beside the bundle. */
function notices({ inputs }) {
  const packages = new Set(Object.keys(inputs).flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []));
  return [...packages].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(path.join(here, folder, "package.json"), "utf8"));
    const files = readdirSync(path.join(here, folder)).filter((file) => /^licen[cs]e/i.test(file));
    if (files.length === 0) throw new Error(`${name} has no licence to pass on`);
    const texts = files.map((file) => readFileSync(path.join(here, folder, file), "utf8").trim());
    return `${name} ${version} (${license})\n\n${texts.join("\n\n")}\n`;
  });
}

for (const name of demo) cpSync(path.join(here, "../../lsp-server/demo", name), path.join(here, "dist/demo", name));
const bundled = [];
for (const build of builds) {
  const made = await context(build);
  if (process.argv.includes("--watch")) await made.watch();
  else {
    const { metafile } = await made.rebuild();
    bundled.push(...notices(metafile));
    await made.dispose();
  }
}
writeFileSync(path.join(here, "dist/THIRD-PARTY.txt"), bundled.join(`\n${"-".repeat(80)}\n\n`));
