import { defineConfig } from "vitest/config";

export default defineConfig({
  // Node 20 supports Symbol.asyncDispose but not the syntax `await using`.
  oxc: { target: "es2023" },
  test: {
    pool: "forks",
    include: ["test/**/*.test.ts"],
    // Prints each case as it ends, because the suite takes a minute or two.
    reporters: ["verbose"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
