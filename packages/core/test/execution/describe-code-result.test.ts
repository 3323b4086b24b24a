import { describe, expect, it } from "vitest";
import { describeCodeResult } from "../../src/execution/describe-code-result.ts";
import { codeResult } from "../support/code-result.ts";

const block = codeResult({ exitCode: 1, output: "no\n" }).blocks[0];
const blocks = block === undefined ? [] : [block];

const refusal = (host: string) => {
  const reason = `${host} is not in this executor's network policy`;
  return { allowed: false, protocol: "connect" as const, host, port: 443, reason };
};

describe("describeCodeResult", () => {
  it.each([
    ["output unchanged", codeResult({ output: " 42\n" }), 1, " 42\n"],
    ["no output", codeResult({ output: " \n" }), 1, "The code ran and printed nothing (exit code 0)."],
    [
      "a failure",
      codeResult({ exitCode: 2, output: "no\n" }),
      1,
      "The code failed with exit code 2. Its output:\nno\n",
    ],
    [
      "requests that the network policy refused",
      codeResult({ output: "42\n", network: Array.from({ length: 12 }, (_, index) => refusal(`host-${index % 11}`)) }),
      1,
      `42\n\nRequests were refused:\n${Array.from({ length: 10 }, (_, index) => refusal(`host-${index}`).reason).join("\n")}`,
    ],
    ["a silent failure", codeResult({ exitCode: 2 }), 1, "The code failed with exit code 2. It printed nothing."],
    [
      "which block failed",
      codeResult({ exitCode: 1, output: "no\n", blocks: [...blocks, ...blocks] }),
      3,
      "Block 2 of 3 (the last 1 did not run) failed with exit code 1. Its output:\nno\n",
    ],
    [
      "a timeout",
      codeResult({ exitCode: 124, timedOut: true, output: "so far\n" }),
      1,
      "The code timed out after 0.0 s and was killed (exit code 124). Its output:\nso far\n",
    ],
    [
      "truncated output",
      codeResult({ output: "long\n", truncated: true }),
      1,
      "long\n\nThe output was longer than the limit: its middle is left out.",
    ],
    [
      "a lost session",
      codeResult({ exitCode: 1, stateLost: true }),
      1,
      "The code failed with exit code 1. It printed nothing.\n\n" +
        "The session was restarted: variables and imports of earlier code are gone.",
    ],
    [
      "saved files",
      codeResult({ output: "ok\n", displays: [{ data: {}, files: ["/a.png", "/a.svg"] }] }),
      1,
      "ok\n\nSaved files:\na.png\na.svg",
    ],
  ])("reports %s", (_, result, blockCount, text) => {
    expect(describeCodeResult(result, blockCount)).toBe(text);
  });
});
