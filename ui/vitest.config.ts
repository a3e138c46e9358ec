import { defineConfig } from "vitest/config";

// Browsers and newer versions of Node.js have JSON.rawJSON, Node.js 20 has it behind this flag.
const execArgv = "rawJSON" in JSON ? [] : ["--harmony-json-parse-with-source"];

export default defineConfig({
  // Pure functions need neither a process for each file nor a browser.
  test: { include: ["tests/**/*.test.ts"], pool: "forks", execArgv, isolate: false, maxWorkers: 1 },
});
