// Writes what the server says about itself into package.json and src/generated/server.json:
// its commands as `perflens.ui.*`, and its settings.
//
// Usage: npm run manifest [-- --check]     with --check nothing is written, and a difference is a failure
//
// The program is $PERFLENS_BIN, or target/debug/perflens. What is written by hand stays: the first
// group of settings, and commands that the server does not have.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const here = path.resolve(import.meta.dirname, "..");
const program = process.env.PERFLENS_BIN ?? path.join(here, "../../target/debug/perflens");

/** Decides where something is fetched from, recorded or sent: never a workspace's own word. */
const MACHINE = new Set(["source", "auth", "record", "symbols", "otlp"]);
/** Only looks: what a workspace that is not trusted may set. */
const HARMLESS = new Set(["hints", "lens", "hover"]);
/** What the extension settles by itself, as it knows how this editor draws. */
const HIDDEN = new Set(["hints.lead"]);
/** What makes sense without a profile. */
const ALWAYS = new Set(["openProfile", "showStatus", "trustWorkspace", "record", "signIn", "signOut", "importUrl", "selectPreset", "query", "profileTest", "switchProject", "explain"]);
const ICONS = { nextHotspot: "$(arrow-down)", previousHotspot: "$(arrow-up)", openProfile: "$(folder-opened)" };

const schema = (subject) => JSON.parse(execFileSync(program, ["schema", subject], { encoding: "utf8" }));

function configuration(settings) {
  return Object.entries(settings.properties)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([group, setting], at) => ({
      title: group[0].toUpperCase() + group.slice(1),
      order: at + 2,
      properties: Object.fromEntries(
        // A list of tables, or tables under names of the user's, is one setting.
        Object.entries(setting.properties ?? { "": setting })
          .filter(([name]) => !HIDDEN.has(`${group}.${name}`))
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, setting]) => [["perflens", group, name].filter(Boolean).join("."), property(group, setting)]),
      ),
    }));
}

function property(group, setting) {
  const { description, oneOf, items, ...rest } = setting;
  // A text or nothing: the settings editor offers a field for texts only, and nothing is an empty one.
  if (Array.isArray(rest.type)) Object.assign(rest, { type: rest.type[0], default: rest.default ?? "" });
  const scope = MACHINE.has(group) ? "machine" : "resource";
  const result = { ...rest, scope, markdownDescription: description.replaceAll("\n", " ") };
  if (oneOf) {
    Object.assign(result, {
      type: "string",
      enum: oneOf.map((choice) => choice.const),
      markdownEnumDescriptions: oneOf.map((choice) => choice.description.replaceAll("\n", " ")),
    });
  }
  if (items) result.items = items;
  return result;
}

function command({ name, title }) {
  return {
    command: `perflens.ui.${name}`,
    title,
    category: "perflens",
    ...(ICONS[name] ? { icon: ICONS[name] } : {}),
    ...(ALWAYS.has(name) ? {} : { enablement: "perflens.hasProfile" }),
  };
}

const settings = schema("settings");
const { commands } = schema("commands");
const groups = configuration(settings);
const names = groups.flatMap((group) => Object.keys(group.properties));
const generated = new Set(commands.map(({ name }) => `perflens.ui.${name}`));

const manifest = JSON.parse(readFileSync(path.join(here, "package.json"), "utf8"));
const previous = new Set(JSON.parse(readFileSync(path.join(here, "src/generated/server.json"), "utf8")).commands.map(({ name }) => `perflens.ui.${name}`));
const own = manifest.contributes.commands.filter((each) => !generated.has(each.command) && !previous.has(each.command));
manifest.contributes.commands = [...own, ...commands.map(command)];
manifest.contributes.configuration = [manifest.contributes.configuration[0], ...groups];
manifest.capabilities.untrustedWorkspaces.restrictedConfigurations = names.filter((name) => !HARMLESS.has(name.split(".")[1]));

const server = { settings: names.map((name) => name.replace("perflens.", "")), commands };
const files = { "package.json": manifest, "src/generated/server.json": server };
let differs = false;
for (const [name, content] of Object.entries(files)) {
  const file = path.join(here, name);
  const text = `${JSON.stringify(content, null, 2)}\n`;
  if (readFileSync(file, "utf8") === text) continue;
  differs = true;
  if (process.argv.includes("--check")) console.error(`${name} is not what the server says; run \`npm run manifest\` in editors/vscode`);
  else writeFileSync(file, text);
}
process.exitCode = differs && process.argv.includes("--check") ? 1 : 0;
