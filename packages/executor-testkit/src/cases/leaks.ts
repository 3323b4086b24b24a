import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { beatingChild } from "../beating-child.ts";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import type { HostRequest } from "../host-request.ts";
import { visibleOnHost } from "../needs.ts";
import { assertStopped, hostHeartbeat } from "../observe/heartbeat.ts";
import { HostProgram } from "../observe/host-program.ts";
import { eventually, passes } from "../observe/within.ts";

/** Much longer than necessary, for machines that are busy with other things. */
const goneWithinMs = 30_000;

/** The ways in which a host program can die while a block runs. */
type Death = NodeJS.Signals | "process.exit()" | "an uncaught error";

const dies = (death: Death): ConformanceCase => ({
  name: `nothing remains after the program dies of ${death}`,
  needs: [visibleOnHost],
  async run(kit) {
    const { language } = kit;
    const [temporary, visible, before] = [await kit.directory(), await kit.directory(), await kit.resources()];
    // If blocks are isolated, the workspace is the only place that both sides see.
    const fenced = kit.capabilities.isolation !== "none";
    const place = (file: string) => (fenced ? file : join(visible, file));
    const background = language.program(language.spawnBeating(place("background"), "new-session"));
    const running = language.program(language.spawnBeating(place("child"), "child"), language.beat(place("main")));
    const killed = death.startsWith("SIG");
    await using host = new HostProgram(kit, {
      options: fenced ? { workDir: visible } : {},
      calls: killed ? [[background], [running]] : [[background]],
      temporary,
      end: death === "process.exit()" ? "exit" : "throw",
    });
    const heartbeats = (killed ? ["background", "child", "main"] : ["background"]).map((file) =>
      hostHeartbeat(join(visible, file)),
    );
    for (const heartbeat of heartbeats) await host.until(`${heartbeat.name} beats`, () => heartbeat.count());
    if (isSignal(death)) await host.kill(death);
    else await host.end();

    await eventually(goneWithinMs, "processes of a dead program die (Leash of @fenced/executor-kit ends them)", () =>
      passes(Promise.all(heartbeats.map(assertStopped))),
    );
    await assertEmptied(temporary);
    await assertSameResources(kit, before);
  },
});

/** Nothing is left behind. */
export const leaks: ConformanceGroup = {
  name: "leaks",
  cases: [
    {
      name: "no process, file or handle remains after stop(), and Node exits by itself",
      async run(kit) {
        const { language } = kit;
        const [temporary, before] = [await kit.directory(), await kit.resources()];
        await using host = new HostProgram(kit, {
          options: {},
          calls: [[language.program(language.print("one"))], [language.program(...beatingChild(kit).statements)]],
          temporary,
          end: "stop",
        } satisfies HostRequest);
        await host.end();
        const [first, , stopped] = host.reports;
        assert.deepEqual(first, { type: "result", exitCode: 0, output: "one\n" }, host.errors);
        assert.deepEqual(
          stopped,
          { type: "stopped", children: [] },
          "no child process remains: stop() ends them all, as killProcesses() of @fenced/executor-kit does",
        );
        assert.deepEqual(await readdir(temporary), [], "no temporary file remains: stop() removes what was made");
        await assertSameResources(kit, before);
      },
    },
    {
      name: "nothing remains of an executor that was stopped in this process",
      needs: [({ subject }) => (subject.listResources === undefined ? "the subject lists no resources" : undefined)],
      async run(kit) {
        const before = await kit.resources();
        const executor = await kit.create();
        await kit.succeedWith(executor, kit.language.print("one"));
        await kit.within("restart()", executor.restart());
        await kit.succeedWith(executor, kit.language.print("two"));
        await kit.within("stop()", executor.stop());
        await assertSameResources(kit, before);
      },
    },
    ...(["SIGKILL", "SIGTERM", "SIGINT", "process.exit()", "an uncaught error"] as const).map(dies),
  ],
};

function isSignal(death: Death): death is NodeJS.Signals {
  return death.startsWith("SIG");
}

async function assertSameResources(kit: CaseContext, before: readonly string[]): Promise<void> {
  await eventually(goneWithinMs, "resources of the executor are gone", async () => {
    const added = (await kit.resources()).filter((name) => !before.includes(name));
    return added.length === 0 ? true : undefined;
  });
}

async function assertEmptied(directory: string): Promise<void> {
  await eventually(
    goneWithinMs,
    "temporary files of a dead program go (Leash of @fenced/executor-kit removes them)",
    async () => ((await readdir(directory)).length === 0 ? true : undefined),
  );
}
