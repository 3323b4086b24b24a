import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { hostFunction } from "@fenced/core";
import { SshCommandLineCodeExecutor, type SshExecutorOptions } from "@fenced/executor-ssh";
import { backend, needs } from "@fenced/test-support";
import { testHiddenBytes } from "@fenced/test-support/hidden-bytes";
import { host, SshServer } from "@fenced/test-support/ssh-server";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";

const available = backend("ssh").available && backend("root").available;
const server = available ? await SshServer.startForAccount() : undefined;
afterAll(async () => server?.[Symbol.asyncDispose]());

function create(options: Partial<SshExecutorOptions> = {}): SshCommandLineCodeExecutor {
  const executor = new SshCommandLineCodeExecutor({ host, configFile: server?.configFile ?? "", ...options });
  onTestFinished(() => executor.stop());
  return executor;
}

/** Nothing is left on the other side. */
async function gone(): Promise<void> {
  await expect.poll(async () => server?.remains(), { timeout: 60_000 }).toEqual([]);
}

describe("an ordinary account", needs("ssh", "root", "python3", "bash", "node"), () => {
  it.each([{}, { warm: {} }, { stateful: true }])(
    "runs blocks of all languages with %j, and leaves nothing",
    async (options) => {
      const executor = create(options);
      const blocks = [
        { language: "bash", code: "id -u; cat data/in.txt; echo more >from-bash" },
        { language: "sh", code: "cat from-bash; echo $0 | sed s,[^/]*$,," },
        { language: "python", code: "import os\nprint(os.getuid(), open('from-bash').read().strip())" },
        { language: "javascript", code: "console.log(process.getuid())" },
        { language: "bash", code: "# filename: saved.sh\necho saved" },
      ];
      await executor.files.write("data/in.txt", "given\n");
      const { output } = await executor.executeCodeBlocks(blocks);
      expect(output).toMatch(/^54321\ngiven\nmore\n\S+\/\n54321 more\n54321\nsaved\n$/);
      expect((await executor.files.list()).map((file) => file.path)).toEqual(["data/in.txt", "from-bash", "saved.sh"]);
      await executor.restart();
      expect(Buffer.from(await executor.files.read("from-bash")).toString()).toBe("more\n");
      await executor.stop();
      await gone();
    },
  );

  it("ends programs that ignore it, and calls functions of the host", async () => {
    const add = hostFunction({
      name: "add",
      description: "Adds",
      input: z.object({ a: z.number(), b: z.number() }),
      execute: ({ a, b }) => a + b,
    });
    const executor = create();
    const code = "from functions import add\nprint(add(a=1, b=2))";
    const result = await executor.executeCodeBlocks([{ language: "python", code }], { functions: [add] });
    expect(result.output).toBe("3\n");
    const stubborn = "trap '' TERM HUP INT; (env -i setsid sleep 600 &) >/dev/null 2>&1; echo begun; sleep 600";
    const late = await executor.executeCodeBlocks([{ language: "bash", code: stubborn }], { timeoutMs: 8000 });
    expect(late).toMatchObject({ timedOut: true, output: "begun\n" });
    await executor.stop();
    await gone();
  });

  it("says that the work directory is not writable", async () => {
    const directory = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    await expect(create({ workDir: directory }).start()).rejects.toThrow(/work directory.*(?:not writable|denied)/i);
  });

  testHiddenBytes((options) => create(options));
});
