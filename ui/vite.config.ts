import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/trunkline/api/static",
    emptyOutDir: true,
    // The page loads nothing it does not need: elk and the editor are chunks of their own.
    chunkSizeWarningLimit: 2000,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The first browsers with light-dark(); for older ones it would be written in a way that needs more than the page has.
    cssTarget: ["chrome123", "edge123", "firefox120", "safari17.5"],
  },
  worker: { format: "es" },
  server: {
    proxy: {
      "/api": "http://127.0.0.1:8000",
      "/readyz": "http://127.0.0.1:8000",
      "/openapi.json": "http://127.0.0.1:8000",
    },
  },
});
