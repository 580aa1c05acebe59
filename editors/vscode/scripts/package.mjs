// Packs the extension: target/vscode/perflens-VERSION[-TARGET].vsix.
//
// Usage: npm run package                                            without a server, for any machine
//        npm run package -- --target linux-x64 --server PROGRAM     with the server of that platform
//
// Targets are those of the marketplaces: linux-x64, linux-arm64, alpine-x64, darwin-arm64, win32-x64, …
// PERFLENS_REPOSITORY is the address of the source repository, for the links of a published package.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";

const here = path.resolve(import.meta.dirname, "..");
const root = path.resolve(here, "../..");
const { target, server } = parseArgs({ options: { target: { type: "string" }, server: { type: "string" } } }).values;
if ((target === undefined) !== (server === undefined)) {
  console.error("--target and --server go together: a package for a platform carries the server of that platform");
  process.exit(2);
}

const manifest = JSON.parse(readFileSync(path.join(here, "package.json"), "utf8"));
const name = ["perflens", manifest.version, target].filter(Boolean).join("-");
const out = path.join(root, "target/vscode");
const stage = path.join(out, name);
const vsix = path.join(out, `${name}.vsix`);

execFileSync(process.execPath, [path.join(here, "scripts/build.mjs")], { stdio: "inherit" });
rmSync(stage, { recursive: true, force: true });
mkdirSync(stage, { recursive: true });
for (const each of ["dist", "media", "README.md"]) cpSync(path.join(here, each), path.join(stage, each), { recursive: true });
for (const each of ["CHANGELOG.md", "LICENSE"]) cpSync(path.join(root, each), path.join(stage, each));
if (server !== undefined) {
  const to = path.join(stage, "server", target.startsWith("win32") ? "perflens.exe" : "perflens");
  cpSync(path.resolve(server), to);
  chmodSync(to, 0o755);
}
// What only developers need stays here.
const { scripts, devDependencies, private: _, ...published } = manifest;
const repository = process.env.PERFLENS_REPOSITORY;
if (repository) published.repository = { type: "git", url: repository };
writeFileSync(path.join(stage, "package.json"), JSON.stringify(published, null, 2));

const vsce = path.join(here, "node_modules/@vscode/vsce/vsce");
const links = repository ? [] : ["--allow-missing-repository", "--no-rewrite-relative-links"];
const platform = target === undefined ? [] : ["--target", target];
execFileSync(process.execPath, [vsce, "package", "--no-dependencies", "--out", vsix, ...platform, ...links], { cwd: stage, stdio: "inherit" });
rmSync(stage, { recursive: true });
console.log(`${path.relative(root, vsix)}: ${Math.round(statSync(vsix).size / 1024)} KiB`);
