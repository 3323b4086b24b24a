import { defineConfig } from "vitest/config";

export default defineConfig({
  // Node 20 knows Symbol.asyncDispose but not the syntax `await using`.
  oxc: { target: "es2023" },
  test: {
    pool: "forks",
    // Machines of CI are shared: a test that real processes made fail gets a second try there.
    retry: process.env["CI"] === undefined ? 0 : 1,
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
