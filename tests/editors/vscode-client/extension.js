// The least that an extension for perflens is: a language client without a feature of its own.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const program = vscode.workspace.getConfiguration("perflensClient").get("program");
  const source = vscode.workspace.getConfiguration("perflens").get("source");
  client = new LanguageClient(
    "perflens",
    "perflens",
    { command: program, args: ["lsp"] },
    {
      documentSelector: [{ scheme: "file" }],
      // VS Code draws hints so close to the code that only a space keeps them apart.
      initializationOptions: { source, hints: { lead: true } },
    },
  );
  return client.start();
};

exports.deactivate = () => client?.stop();
