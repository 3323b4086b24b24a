import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const scripts = join(import.meta.dirname, "../../scripts");

function run(script: string, ...words: readonly string[]) {
  return spawnSync(process.execPath, ["--import", "tsx", join(scripts, script), ...words], { encoding: "utf8" });
}

describe("the commands of the workspace", () => {
  it.each([
    "pack.mjs",
    "sbom.mjs",
    "docs.mjs",
    "mutate.mjs",
    "run-examples.ts",
    "check-installs.ts",
    "run-benchmarks.ts",
  ])("say what they do: %s", (script) => {
    const { status, stdout, stderr } = run(script, "--help");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/^[A-Z`]\w+ ?[^]*\n$/);
  });

  it.each([
    ["check-installs.ts", "--nonsense"],
    ["run-benchmarks.ts", "--nonsense"],
    ["pack.mjs", "nonsense"],
    ["run-examples.ts", "nonsense"],
  ])("say what is wrong: %s %s", (script, word) => {
    const { status, stderr } = run(script, word);
    expect(status).toBe(1);
    expect(stderr).toContain("nonsense");
    expect(stderr).not.toMatch(/^ {4}at /m);
  });

  it("do not go on after Ctrl+C, even if what they ran had just ended well", async () => {
    const child = String.raw`process.on("SIGINT", () => process.exit(0)); setInterval(() => {}, 1000); console.log("ready")`;
    const program = `
import { spawn } from "node:child_process";
import { interruptedWith, stopTogether } from ${JSON.stringify(join(scripts, "workspace.mjs"))};
const child = spawn(process.execPath, ["-e", ${JSON.stringify(child)}], { stdio: ["ignore", "inherit", "inherit"] });
stopTogether(child);
child.on("exit", (code) => process.exit(code || interruptedWith()));
`;
    const running = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
    await once(running.stdout, "data");
    // As a terminal does.
    process.kill(-(running.pid ?? 0), "SIGINT");
    expect(await once(running, "exit")).toEqual([130, null]);
  });
});
