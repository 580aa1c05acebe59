// Runs the tests that need no editor: bundled like the extension, run by node.
import { spawnSync } from "node:child_process";
import path from "node:path";
import { build } from "esbuild";

const here = path.resolve(import.meta.dirname, "..");
const outfile = path.join(here, "../../target/vscode/pure.test.cjs");
await build({ entryPoints: [path.join(here, "tests/pure.test.ts")], bundle: true, platform: "node", format: "cjs", outfile, logLevel: "warning" });
process.exitCode = spawnSync(process.execPath, ["--test", outfile], { stdio: "inherit" }).status ?? 1;
