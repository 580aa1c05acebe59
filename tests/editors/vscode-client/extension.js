// The least that an extension for perflens is: a language client without a feature of its own.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const settings = vscode.workspace.getConfiguration("perflens");
  client = new LanguageClient(
    "perflens",
    "perflens",
    { command: settings.get("program"), args: ["lsp"] },
    {
      documentSelector: [{ scheme: "file" }],
      initializationOptions: { source: { file: settings.get("source.file") } },
    },
  );
  return client.start();
};

exports.deactivate = () => client?.stop();
