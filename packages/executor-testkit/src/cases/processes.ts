import assert from "node:assert/strict";
import { join } from "node:path";
import type { CodeResult } from "@fenced/core";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { childKinds, type ChildKind } from "../languages/fixture-language.ts";
import { childKind, keepsOutput, onHost, startsProcesses, statement, workDir } from "../needs.ts";
import {
  assertBeats,
  assertDead,
  assertStopped,
  hostHeartbeat,
  isAlive,
  processId,
  workspaceHeartbeat,
} from "../observe/heartbeat.ts";

// Once the block that started it has ended, nothing reveals where a process without traces came from, so nobody could
// find it on a host without isolation.
const kinds = childKinds.filter((kind) => kind !== "no-traces");

const livesUntilRestart = (kind: ChildKind): ConformanceCase => ({
  name: `a process that a block leaves running lives until restart() (${kind})`,
  needs: [childKind(kind)],
  async run(kit) {
    const { language } = kit;
    const executor = await kit.create();
    const result = await kit.succeedWith(executor, language.spawnBeating("background", kind), language.print("done"));
    assert.equal(result.output, "done\n");
    const heartbeat = workspaceHeartbeat(executor, "background");
    await assertBeats(kit, heartbeat);
    await kit.succeedWith(executor, language.print("next"));
    await assertBeats(kit, heartbeat);
    await kit.within("restart()", executor.restart());
    await assertDead(kit, executor, "background");
  },
});

const diesWithStop = (kind: ChildKind): ConformanceCase => ({
  name: `a process that a block leaves running is dead after stop() (${kind})`,
  needs: [childKind(kind), onHost],
  async run(kit) {
    const { language } = kit;
    const executor = await kit.create();
    await kit.succeedWith(executor, language.spawnBeating("background", kind));
    const pid = await processId(executor, "background");
    assert.ok(pid !== undefined && (await isAlive(pid)), "it lives until stop()");
    await kit.within("stop()", executor.stop());
    assert.ok(!(await isAlive(pid)), `process ${pid} outlived stop()`);
  },
});

/** Processes that outlive their block. */
export const processes: ConformanceGroup = {
  name: "background processes",
  waits: true,
  cases: [
    {
      name: "a block ends with its main process, even if a child keeps its output open",
      needs: [startsProcesses],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create({ timeoutMs: 45_000 });
        const result = await kit.succeedWith(
          executor,
          language.spawnBeating("background", "child"),
          language.print("done"),
        );
        assert.equal(result.timedOut, false);
        assert.equal(result.output, "done\n");
        await assertBeats(kit, workspaceHeartbeat(executor, "background"));
      },
    },
    ...kinds.map(livesUntilRestart),
    ...kinds.map(diesWithStop),
    {
      name: "no process writes to a given workDir after stop()",
      needs: [workDir],
      async run(kit) {
        const { language } = kit;
        const directory = await kit.directory();
        const executor = await kit.create({ workDir: directory });
        await kit.succeedWith(executor, language.spawnBeating("background", "child"));
        await assertBeats(kit, workspaceHeartbeat(executor, "background"));
        await kit.within("stop()", executor.stop());
        await assertStopped(hostHeartbeat(join(directory, "background")));
      },
    },
    {
      name: "later blocks can call a server that a block started, until restart()",
      needs: [startsProcesses, keepsOutput, statement("spawnServer"), statement("callServer")],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        await kit.succeedWith(executor, language.spawnServer?.("port") ?? "");
        const call = language.program(language.callServer?.("port") ?? "");
        // If the blocks share one process, its log may appear in the output of the next block, in the middle of a line.
        const answers = ({ output }: CodeResult): string => output.replaceAll(/called|\n/g, "");
        assert.equal(answers(await kit.succeed(executor, call)), "pong");
        assert.equal(answers(await kit.succeed(executor, [call, call])), "pongpong");
        await kit.within("restart()", executor.restart());
        assert.equal((await kit.succeed(executor, call)).output, "no answer\n");
      },
    },
  ],
};
