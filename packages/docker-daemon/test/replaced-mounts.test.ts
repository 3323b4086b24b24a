import { readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { BackendUnavailableError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { refuseReplaced } from "../src/index.ts";

const source = tmpdir();
const { dev, ino } = statSync(source);
const identity = `${dev}:${ino}`;
const at = (target: string) => ({ source, target, identity });

describe.skipIf(process.platform !== "linux")("what a container on the same kernel says about a mount", () => {
  const kernel = process.platform === "linux" ? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() : "";
  const check = (targets: readonly string[], seen: Readonly<Record<string, string>>) =>
    refuseReplaced(
      targets.map((target) => at(target)),
      { kernel, mounts: new Map(Object.entries(seen)) },
    );

  it("is accepted if it is what was checked, or if its user cannot reach it", async () => {
    const seen = { "/data": identity, "/root/data": "?" };
    await expect(check(["/data", "/root/data"], seen)).resolves.toBeUndefined();
  });

  it.each([
    ["is something else", { "/data": identity, "/data/inner": "1:1" }],
    ["is missing", { "/data": identity }],
    ["is that other code may have closed the way to it", { "/data": identity, "/data/inner": "?" }],
  ])("is refused if it %s", async (_, seen) => {
    await expect(check(["/data", "/data/inner"], seen)).rejects.toThrow(BackendUnavailableError);
  });
});
