import assert from "node:assert/strict";
import type { CodeBlock } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { language, startsPrograms } from "../needs.ts";

const python = (code: string): CodeBlock => ({ language: "python", code });
/** Says when it holds 64 MiB, which it has written to, and has used the processor for half a second; then waits to be ended. */
const busy = `
import sys, time
held = bytearray(b"x") * (64 << 20)
while time.process_time() < 0.5: pass
print("held", flush=True)
time.sleep(600)
`;

/** What `usage()` says of the place. */
export const usage: ConformanceGroup = {
  name: "usage",
  cases: [
    {
      name: "counts the files of the workspace, and never answers with something else than a number",
      needs: [language("python")],
      async run(kit) {
        const executor = await kit.create();
        assert.ok(executor.usage !== undefined, "the executor has usage()");
        const before = await kit.within("usage", executor.usage());
        await kit.succeed(executor, python("open('big', 'wb').write(b'x' * (4 << 20))"));
        const after = await kit.within("usage", executor.usage());
        for (const [name, value] of Object.entries({ ...before, ...after })) {
          assert.ok(Number.isFinite(value) && value >= 0, `${name} is ${String(value)}`);
        }
        assert.equal(after.diskBytes === undefined, before.diskBytes === undefined);
        if (after.diskBytes === undefined || before.diskBytes === undefined) return;
        assert.ok(after.diskBytes - before.diskBytes >= 4 << 20, `from ${before.diskBytes} to ${after.diskBytes}`);
      },
    },
    {
      name: "sees the processes, memory and processor time of a program, where it says anything about them",
      needs: [language("python"), startsPrograms],
      async run(kit) {
        const executor = await kit.create();
        await executor.start();
        assert.ok(executor.usage !== undefined, "the executor has usage()");
        const before = await kit.within("usage", executor.usage());
        const program = await executor.processes?.start({ command: ["python3", "-c", busy] });
        assert.ok(program);
        const reader = program.stdout.getReader();
        assert.match(Buffer.from((await kit.within("the program", reader.read())).value ?? []).toString(), /held/);
        const during = await kit.within("usage", executor.usage());
        await reader.cancel();
        await program.kill();
        const grew = (name: "processes" | "memoryBytes" | "processorMs", least: number): void => {
          const [from, to] = [before[name], during[name]];
          assert.equal(to === undefined, from === undefined, `${name} is known before and during a program`);
          if (from !== undefined && to !== undefined) assert.ok(to - from >= least, `${name} from ${from} to ${to}`);
        };
        grew("processes", 1);
        grew("memoryBytes", 32 << 20);
        grew("processorMs", 400);
        const { memoryBytes, memoryLimitBytes } = during;
        if (memoryBytes !== undefined && memoryLimitBytes !== undefined) assert.ok(memoryBytes <= memoryLimitBytes);
      },
    },
  ],
};
