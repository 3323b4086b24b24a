import { describeCodeExecutor } from "@fenced/core";
import { ACADynamicSessionsCodeExecutor, staticToken } from "@fenced/executor-aca";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

describe("the network of a pool", () => {
  it.each([
    ["EgressEnabled", "open", "The code has network access."],
    ["EgressDisabled", "none", "The code has no network access: it cannot download or install anything."],
  ] as const)("is what `egress` says: %s", async (egress, network, sentence) => {
    const options = { poolManagementEndpoint: "https://pool.test", credential: staticToken("t") };
    const executor = new ACADynamicSessionsCodeExecutor({ ...options, egress });
    expect(executor.capabilities.network).toBe(network);
    expect(describeCodeExecutor(executor)).toContain(sentence);
    const unknown = new ACADynamicSessionsCodeExecutor(options);
    expect(unknown.capabilities).not.toHaveProperty("network");
    expect(describeCodeExecutor(unknown)).not.toContain("network");
  });

  it("is known while a session is open, too", needs("python3"), async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ egress: "EgressDisabled" });
    await executor.start();
    expect(executor.capabilities).toMatchObject({ network: "none", displays: true });
  });
});

describe("a NodeLTS pool", needs("python3"), () => {
  it("is recognized by its metadata, and runs JavaScript that keeps variables", async () => {
    await using setting = await Setting.open({ poolType: "NodeLTS" });
    const executor = setting.executor({ env: { FENCED_A: "executor" } });
    await executor.start();
    expect(executor.capabilities).toMatchObject({
      languages: ["javascript"],
      stateful: true,
      functions: [],
      hostFunctions: [],
      stdin: false,
    });
    const javascript = { language: "js" };
    expect((await run(executor, "const x = await Promise.resolve(20); x + 1", javascript)).output).toBe("21\n");
    expect((await run(executor, "console.log(x, process.env.FENCED_A)", javascript)).output).toBe("20 executor\n");
    const failed = await run(executor, "throw new TypeError('no')", javascript);
    expect(failed).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("TypeError: no") });
    await executor.files.write("in.txt", "from outside");
    const read = "require('fs').readFileSync('in.txt', 'utf8')";
    expect((await run(executor, read, javascript)).output).toBe("from outside\n");
    expect((await run(executor, "print(1)")).output).toMatch(/unknown language "python"/);
  });

  it("ends a block that takes too long", async () => {
    await using setting = await Setting.open({ poolType: "NodeLTS" });
    const executor = setting.executor({ poolType: "NodeLTS" });
    const result = await run(executor, "for (;;);", { language: "javascript", timeoutMs: 1500 });
    expect(result).toMatchObject({ exitCode: 124, stateLost: true });
    expect((await run(executor, "1 + 1", { language: "javascript" })).output).toBe("2\n");
  });
});

describe("a Shell pool", needs("python3", "bash"), () => {
  it("runs bash, reports exit codes, and keeps files but no variables", async () => {
    await using setting = await Setting.open({ poolType: "Shell" });
    const executor = setting.executor({ env: { FENCED_A: "it's $HOME" } });
    await executor.start();
    expect(executor.capabilities).toMatchObject({ languages: ["bash"], stateful: false, functions: [] });
    const bash = { language: "bash" };
    expect((await run(executor, 'echo "$FENCED_A"; x=1; echo kept > kept.txt; pwd', bash)).output).toBe(
      "it's $HOME\n/mnt/data\n",
    );
    expect(await run(executor, 'echo "${x-unset}" $(cat kept.txt); exit 7', bash)).toMatchObject({
      exitCode: 7,
      output: "unset kept\n",
    });
    expect(await executor.getFileList()).toEqual(["kept.txt"]);
    expect((await run(executor, "cat", bash)).output).toBe("");
  });
});
