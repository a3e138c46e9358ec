/** What the web UI's code is checked for, in addition to its types (tsc) and its format (prettier). */

import js from "@eslint/js";
import reactHooks from "eslint-plugin-react-hooks";
import { defineConfig, globalIgnores } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig([
  globalIgnores(["node_modules", "src/api/schema.d.ts"]),
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  {
    files: ["public/*.js"],
    languageOptions: {
      sourceType: "script",
      globals: { document: "readonly", localStorage: "readonly", matchMedia: "readonly" },
    },
  },
  {
    files: ["**/*.{ts,tsx}"],
    extends: [typescript.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Control characters are matched on purpose: they are made visible or removed.
      "no-control-regex": "off",
      // With noUncheckedIndexedAccess, `!` states what the loop around it guarantees.
      "@typescript-eslint/no-non-null-assertion": "off",
      // Slow, and it finds what an upgrade of a library brings, not what a change of ours does.
      "@typescript-eslint/no-deprecated": "off",
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true }],
      "@typescript-eslint/only-throw-error": [
        "error",
        { allow: [{ from: "package", name: "Redirect", package: "@tanstack/router-core" }] },
      ],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/consistent-type-imports": ["error", { fixStyle: "inline-type-imports" }],
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-console": "error",
    },
  },
  {
    // The type checker does not see that these values change while the code awaits something.
    files: ["src/api/runChanges.ts", "src/api/eventStream.ts"],
    rules: { "@typescript-eslint/no-unnecessary-condition": "off" },
  },
  {
    // The plugin's other rules are for the React Compiler, which does not compile this page.
    files: ["src/**/*.{ts,tsx}"],
    plugins: { "react-hooks": reactHooks },
    rules: { "react-hooks/rules-of-hooks": "error", "react-hooks/exhaustive-deps": "error" },
  },
]);
