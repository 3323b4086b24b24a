import path from "node:path";
import { hostFunction, loadComponent, type CodeExecutor } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, variant } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { afterAll, describe, expect, it } from "vitest";

const hostCommand = await bundledCommand(path.join(import.meta.dirname, "fixtures/executor-host.ts"));

/** A backend that can only run code and move files: it provides no connections, so the kit carries calls in files. */
class ByFiles extends LocalCommandLineCodeExecutor {
  protected override async openSession(signal: AbortSignal): ReturnType<LocalCommandLineCodeExecutor["openSession"]> {
    const session = await super.openSession(signal);
    // Hides the JavaScript package from lists of files, as backends that have one do.
    await session.openHostCalls?.(() => {});
    return Object.defineProperty(session, "openHostCalls", { value: undefined });
  }
}

describe("a backend without connections", needs("python3", "bash", "node"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    {
      name: "LocalCommandLineCodeExecutor, with host functions by files",
      create: (options) => new ByFiles(options),
      load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("@fenced/executor-local") }),
      takesWorkDir: true,
      hostCommand,
    },
    variant("host functions"),
  );
});

const add = hostFunction({
  name: "add",
  description: "Adds.",
  input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  execute: ({ a, b }) => Number(a) + Number(b),
});
const python = (code: string) => [{ language: "python", code }];

/** What code puts where the host looks: `place` is the next file of a connection that it has announced. */
const attacks: readonly (readonly [what: string, code: string])[] = [
  ["a named pipe", "os.mkfifo(place)"],
  ["a directory", "os.mkdir(place)"],
  ["a link to a file of the host", "os.symlink('/etc/passwd', place)"],
  ["a link to a device", "os.symlink('/dev/zero', place)"],
  ["a file of a terabyte", "open(place, 'wb').truncate(2 ** 40)"],
  ["a named pipe for an announcement", "os.mkfifo(base + '-c1')"],
  ["an announcement of a terabyte", "open(base + '-c1', 'wb').truncate(2 ** 40)"],
  ["a thousand announcements", "[open(f'{base}-c{n}', 'w').write(f'{n:032x}') for n in range(1, 1000)]"],
  ["a name that leads elsewhere", "open(base + '-c1', 'w').write('../../../../../tmp/evil')"],
  ["a missing first file", "os.remove(base)"],
];

describe("code that attacks the files of its calls", needs("python3"), () => {
  it("achieves nothing, and the next block can make calls", { timeout: 120_000 }, async () => {
    await using executor = new ByFiles({ functions: [add] });
    for (const [what, attack] of attacks) {
      const code = `import glob, os, time
base = glob.glob(".fenced-calls-" + "?" * 16)[0]
open(base + "-c0", "w").write("0" * 32)
place = base + "-" + "0" * 32 + "-r0"
${attack}
time.sleep(0.3)
print("ended")`;
      const attacked = await executor.executeCodeBlocks(python(code));
      const after = await executor.executeCodeBlocks(python("from functions import add\nprint(add(20, 22))"));
      expect([what, attacked.output, after.output]).toEqual([what, "ended\n", "42\n"]);
    }
    const left =
      "import glob, os; print([each for each in glob.glob('.fenced-calls-*-*') if os.path.isfile(each) and not os.path.islink(each)])";
    expect((await executor.executeCodeBlocks(python(left))).output).toBe("[]\n");
  });
});
