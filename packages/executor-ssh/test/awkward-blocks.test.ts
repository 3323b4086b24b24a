import { setTimeout as sleep } from "node:timers/promises";
import type { CodeResult } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { bash, create } from "./support/server.ts";

describe("awkward blocks", needs("ssh", "bash"), () => {
  it("may have variables of any name", async () => {
    const names = ["id", "number", "d", "file", "input", "after", "code", "workspace", "shell", "setsid", "nonce"];
    const env = Object.fromEntries(names.map((name) => [name, "7"]));
    const result = await bash(create(), 'echo "$id $file $shell $setsid"; echo problem >&2', { env });
    expect(result).toMatchObject({ exitCode: 0, stdout: "7 7 7 7\n", stderr: "problem\n" });
  });

  it("do not time out because of a slow reader, and keep their background processes", async () => {
    const executor = create();
    const code = "sleep 300 >/dev/null 2>&1 & echo $!";
    let result: CodeResult | undefined;
    for await (const event of executor.streamCodeBlocks([{ language: "bash", code }], { timeoutMs: 3000 })) {
      if (event.type === "result") ({ result } = event);
      else if (event.type === "stdout") await sleep(4000);
    }
    expect(result).toMatchObject({ exitCode: 0, timedOut: false });
    expect(await bash(executor, `kill -0 ${result?.output.trim()}`)).toMatchObject({ exitCode: 0, output: "" });
  });
});
