import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { needs } from "@fenced/test-support";
import { expect, it } from "vitest";

it("runs under node:test, with skips that give their reasons", { ...needs("python3"), timeout: 120_000 }, async () => {
  const file = join(import.meta.dirname, "fixtures/node-test-suite.ts");
  const args = ["--conditions=@fenced/source", "--import", "tsx", "--test", "--test-reporter=tap", file];
  const { NODE_TEST_CONTEXT: _inner, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toMatch(/ok \d+ - runs blocks in order/);
  expect(stdout).toMatch(/ok \d+ - variables survive from block to block .*# SKIP not stateful/);
  expect(stdout).toMatch(/# fail 0\b/);
  expect(stdout).toMatch(/# skipped 3\b/);
});
