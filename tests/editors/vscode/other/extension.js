// Hints of another extension: those that must stay when ours are switched off.
"use strict";
const vscode = require("vscode");

exports.activate = (context) => {
  const provider = { provideInlayHints: () => [new vscode.InlayHint(new vscode.Position(3, 9), "«other»")] };
  context.subscriptions.push(vscode.languages.registerInlayHintsProvider({ scheme: "file", language: "rust" }, provider));
};
