// Stands between an editor and `perflens lsp`, and writes down what is said.
//
// Usage: node tap.js SERVER FILE ARGS…     runs SERVER with ARGS
//
// FILE gets a line of JSON per message: {at: milliseconds, from: "editor" or "server", message}. It is
// for finding out who asked what when, and for counting that.
"use strict";
const { spawn } = require("node:child_process");
const fs = require("node:fs");

// Calls `found` with each message of a stream of the protocol.
function messages(found) {
  let kept = Buffer.alloc(0);
  return (chunk) => {
    kept = Buffer.concat([kept, chunk]);
    for (;;) {
      const end = kept.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/content-length: *(\d+)/i.exec(kept.subarray(0, end).toString())[1]);
      if (kept.length < end + 4 + length) return;
      found(JSON.parse(kept.subarray(end + 4, end + 4 + length).toString()));
      kept = kept.subarray(end + 4 + length);
    }
  };
}

// What a tap has written down so far.
function heard(file) {
  if (!fs.existsSync(file)) return [];
  // The last line may be written right now.
  return fs.readFileSync(file, "utf8").split("\n").slice(0, -1).map((line) => JSON.parse(line));
}

// A program that is SERVER with a tap on it, for where an editor's settings name a program.
function tapped(server, file, program) {
  const quoted = [process.execPath, __filename, server, file].map((word) => `'${word}'`).join(" ");
  fs.writeFileSync(program, `#!/bin/sh\nif [ "$1" = lsp ]; then exec ${quoted} "$@"; fi\nexec '${server}' "$@"\n`, { mode: 0o755 });
}

function listen([server, file, ...args]) {
  const start = Date.now();
  const child = spawn(server, args, { stdio: ["pipe", "pipe", "inherit"] });
  const note = (from) => messages((message) => fs.appendFileSync(file, `${JSON.stringify({ at: Date.now() - start, from, message })}\n`));
  const [fromEditor, fromServer] = [note("editor"), note("server")];
  process.stdin.on("data", (chunk) => {
    fromEditor(chunk);
    child.stdin.write(chunk);
  });
  process.stdin.on("end", () => child.stdin.end());
  child.stdout.on("data", (chunk) => {
    fromServer(chunk);
    process.stdout.write(chunk);
  });
  child.on("exit", (code) => process.exit(code ?? 1));
}

module.exports = { heard, tapped };
if (require.main === module) listen(process.argv.slice(2));
