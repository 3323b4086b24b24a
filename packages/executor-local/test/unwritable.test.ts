import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { text } from "node:stream/consumers";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { hostCommand } from "./support/host-command.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

describe("a work directory that cannot be written to", needs("python3", "root"), () => {
  it("because it is read-only is called so", async () => {
    const workDir = await temporaryDirectory();
    const program = await hostCommand("runs-a-block.ts");
    const inside = ["-c", `mount -o bind,ro "$0" "$0" && exec "$@"`, workDir, ...program, "print(1)"];
    const options = JSON.stringify({ workDir });
    const child = spawn("unshare", ["--mount", "sh", ...inside, options], {
      env: { ...process.env, FENCED_TEST_TMPDIR: tmpdir() },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const [said] = await Promise.all([text(child.stderr), once(child, "exit")]);
    expect(said).toMatch(/EROFS.*read-only: set `workDir` to one that can be written to/);
  });
});
