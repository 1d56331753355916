import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

// For development: a server, and optionally a token in place of a session.
const server = process.env.STATEWRIGHT_URL ?? "http://127.0.0.1:8080";
const token = process.env.STATEWRIGHT_TOKEN;
const headers = token ? { authorization: `token ${token}` } : undefined;

// The console is in English, and the widgets bring their few words in thirty languages.
const english = {
  name: "english",
  load(id) {
    return /\/[a-z]{2}-[A-Z]{2}\.m?js$/.test(id) && !id.includes("en-US") ? "export default {};" : undefined;
  },
};

// Our own elements are made by `ui/jsx.ts`, which shows the texts of others safely.
const OWN = "src/ui/jsx.ts";
const safe = {
  name: "safe",
  enforce: "pre",
  resolveId(source, importer = "") {
    const isOurs = !importer.includes("/node_modules/") && !importer.endsWith(`/${OWN}`);
    const isWanted = isOurs && /^react\/jsx-(dev-)?runtime$/.test(source);
    return isWanted ? fileURLToPath(new URL(OWN, import.meta.url)) : undefined;
  },
};

export default defineConfig({
  plugins: [safe, english],
  base: "./",
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    assetsDir: ".",
    target: "es2023",
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    rollupOptions: {
      output: {
        entryFileNames: "main.js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  worker: {
    format: "es",
    rollupOptions: { output: { entryFileNames: "[name].js" } },
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/signin", "/signout", "/user", "/invite", "/cli-login", "/welcome"].map((path) => [
        path,
        { target: server, changeOrigin: false, headers },
      ]),
    ),
  },
});
