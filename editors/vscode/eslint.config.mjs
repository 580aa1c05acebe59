// The strictest rules of typescript-eslint, with its checker; fewer rules than that need a reason.
import path from "node:path";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "node_modules/"] },
  {
    files: ["src/**/*.ts", "tests/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { project: ["tsconfig.json", "src/webview/tsconfig.json"], tsconfigRootDir: path.resolve(import.meta.dirname) },
    },
    rules: {
      // Numbers in texts are what this extension is about.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // node's own runner waits for its tests.
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: [{ from: "package", name: "test", package: "node:test" }] }],
      // The editor's classes are shapes in its API: whoever has the members is one.
      "@typescript-eslint/no-unsafe-class-instance-assignment": "off",
      // Settings are read by name; what type they have, the manifest says.
      "@typescript-eslint/no-unnecessary-type-parameters": "off",
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    },
  },
);
