// Publishes packages that `npm run package` has made, to both marketplaces.
//
// Usage: VSCE_PAT=… OVSX_PAT=… npm run publish -- FILE.vsix…
//
// A marketplace without its token is left out, and that is said. Nothing is built here: what is
// published is what was tested.
import { execFileSync } from "node:child_process";
import path from "node:path";

const here = path.resolve(import.meta.dirname, "..");
const files = process.argv.slice(2);
if (files.length === 0) {
  console.error("name the packages to publish");
  process.exit(2);
}
const run = (program, args) => execFileSync(process.execPath, [program, ...args], { stdio: "inherit" });

if (process.env.VSCE_PAT) run(path.join(here, "node_modules/@vscode/vsce/vsce"), ["publish", "--skip-duplicate", "--packagePath", ...files]);
else console.error("VSCE_PAT is not set: not published to the Visual Studio Marketplace");

// Open VSX has a client of its own, taken only when it is needed.
if (process.env.OVSX_PAT) execFileSync("npx", ["--yes", "ovsx@1.4.0", "publish", "--skip-duplicate", "--packagePath", ...files], { stdio: "inherit" });
else console.error("OVSX_PAT is not set: not published to Open VSX");
