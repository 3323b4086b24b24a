import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConformanceGroup } from "../conformance-case.ts";
import { breakable, connected, live } from "../needs.ts";
import { followStream } from "../observe/follow-stream.ts";
import { beating, untilRunning } from "../observe/until-running.ts";

/** A container that is killed, a kernel that dies, a connection that breaks. */
export const lostSession: ConformanceGroup = {
  name: "lost session",
  cases: [
    {
      name: "only the next result reports that the session was lost while idle",
      needs: [breakable],
      async run(kit) {
        const reasons: string[] = [];
        const executor = await kit.create({ onSessionLost: (reason) => reasons.push(reason) });
        await kit.succeedWith(executor, kit.language.print("before"));
        await kit.breakPlace(executor);
        // Until the loss is known, a call may still go to the dead session.
        if (connected(kit) === undefined) await kit.eventually("onSessionLost is called", () => reasons[0]);
        const after = await kit.succeedWith(executor, kit.language.print("after"));
        assert.equal(after.output, "after\n");
        assert.equal(after.stateLost, true);
        assert.equal(reasons.length, 1, `onSessionLost was called ${reasons.length} times: ${reasons.join("; ")}`);
        assert.ok((reasons[0] ?? "").length > 10, "the reason is a sentence");
        assert.equal((await kit.succeedWith(executor, kit.language.print("later"))).stateLost, false);
      },
    },
    {
      name: "onSessionLost is called while nothing runs, and may throw",
      needs: [breakable, connected],
      async run(kit) {
        let reason: string | undefined;
        const executor = await kit.create({
          onSessionLost: (said) => {
            reason = said;
            throw new Error("an application's own mistake");
          },
        });
        const heard: string[] = [];
        const stop = executor.onSessionLost?.(() => heard.push("never"));
        executor.onSessionLost?.((said) => heard.push(said));
        stop?.();
        await kit.succeedWith(executor, kit.language.print("before"));
        await kit.breakPlace(executor);
        await kit.eventually("onSessionLost is called", () => reason);
        assert.deepEqual(heard, executor.onSessionLost ? [reason] : [], "listeners hear the same, unless they left");
        assert.equal((await kit.succeedWith(executor, kit.language.print("after"))).stateLost, true);
      },
    },
    {
      name: "is reported by the interrupted call's result or by the next one",
      needs: [breakable, live],
      async run(kit) {
        const { language } = kit;
        const reasons: string[] = [];
        const executor = await kit.create({ onSessionLost: (reason) => reasons.push(reason) });
        const program = language.program(...beating(language, "main"));
        const followed = followStream(executor.streamCodeBlocks([program]));
        followed.result.catch(() => {});
        await untilRunning(kit, executor, followed, "main");
        await kit.breakPlace(executor);
        const ended = await kit.within(
          "the call under way",
          followed.result.catch(() => undefined),
        );
        const next = await kit.succeedWith(executor, language.print("after"));
        assert.deepEqual([ended?.stateLost === true, next.stateLost].filter(Boolean), [true], "one result reports it");
        assert.equal(reasons.length, 1, reasons.join("; "));
      },
    },
    {
      name: "is not reported after stop() and restart()",
      async run(kit) {
        const reasons: string[] = [];
        const executor = await kit.create({ onSessionLost: (reason) => reasons.push(reason) });
        await kit.succeedWith(executor, kit.language.print("before"));
        await kit.within("restart()", executor.restart());
        assert.equal((await kit.succeedWith(executor, kit.language.print("next"))).stateLost, false);
        await kit.within("stop()", executor.stop());
        await kit.within("start()", executor.start());
        assert.equal((await kit.succeedWith(executor, kit.language.print("last"))).stateLost, false);
        await kit.within("stop()", executor.stop());
        // Wait, because a late end would be reported late.
        await sleep(500);
        assert.deepEqual(reasons, []);
      },
    },
  ],
};
