import { setTimeout as sleep } from "node:timers/promises";
import type { CodeResult } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { bash, create } from "./support/server.ts";

describe("awkward blocks", needs("ssh", "bash", "python3"), () => {
  it("may have variables of any name", async () => {
    const env = { path: "7", "not-a-name": "in the shell", "1x": "nor this" };
    const code = "import os\nprint(*[os.environ[name] for name in ('path', 'not-a-name', '1x')])";
    const executor = create({ env: { "other-name": "8" } });
    const result = await executor.executeCodeBlocks([{ language: "python", code }], { env });
    expect(result).toMatchObject({ exitCode: 0, stdout: "7 in the shell nor this\n" });
    expect((await bash(executor, "env | grep other-name")).output).toBe("other-name=8\n");
  });

  it("have their scripts in the session's own directory, not in the host's root", async () => {
    const script = (await bash(create(), 'dirname "$0"')).output.trim();
    expect(script).toMatch(/\/fenced-remote-[\w-]+$/);
  });

  it("do not time out because of a slow reader, and keep their background processes", async () => {
    const executor = create();
    const code = "sleep 300 >/dev/null 2>&1 & echo $!";
    let result: CodeResult | undefined;
    // How long the block takes depends on the machine. One whose reader counts never ends in time.
    for (let timeoutMs = 3000; result?.timedOut !== false && timeoutMs < 60_000; timeoutMs *= 2) {
      for await (const event of executor.streamCodeBlocks([{ language: "bash", code }], { timeoutMs })) {
        if (event.type === "result") ({ result } = event);
        else if (event.type === "stdout") await sleep(timeoutMs + 1000);
      }
    }
    expect(result).toMatchObject({ exitCode: 0, timedOut: false });
    expect(await bash(executor, `kill -0 ${result?.output.trim()}`)).toMatchObject({ exitCode: 0, output: "" });
  });
});
