import { defineConfig } from "vitest/config";

export default defineConfig({
  // Node 20 knows Symbol.asyncDispose but not the syntax `await using`.
  oxc: { target: "es2023" },
  test: {
    pool: "forks",
    include: ["test/**/*.test.ts"],
    // Each case as it ends: the suite takes a minute or two.
    reporters: ["verbose"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
