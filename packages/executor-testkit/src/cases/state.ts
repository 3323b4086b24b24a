import assert from "node:assert/strict";
import type { ConformanceGroup } from "../conformance-case.ts";
import { processes, stateful } from "../needs.ts";

/** Variables that persist, or not, depending on the capabilities. */
export const state: ConformanceGroup = {
  name: "state",
  cases: [
    {
      name: "variables survive from block to block and from call to call",
      needs: [stateful],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        const read = language.program(language.printAssigned("kept"));
        const first = await kit.succeed(executor, [language.program(language.assign("kept", "value")), read]);
        assert.equal(first.output, "value\n");
        const second = await kit.succeed(executor, read);
        assert.equal(second.output, "value\n");
        assert.equal(second.stateLost, false);
      },
    },
    {
      name: "variables survive a block that fails",
      needs: [stateful],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        const result = await kit.run(
          executor,
          language.program(language.assign("kept", "value"), language.fail("deliberate")),
        );
        assert.equal(result.stateLost, false);
        assert.equal((await kit.succeedWith(executor, language.printAssigned("kept"))).output, "value\n");
      },
    },
    {
      name: "executors do not share variables",
      needs: [stateful],
      async run(kit) {
        const { language } = kit;
        await kit.succeedWith(await kit.create(), language.assign("kept", "value"));
        const other = await kit.run(await kit.create(), language.program(language.printAssigned("kept")));
        assert.notEqual(other.exitCode, 0);
      },
    },
    {
      name: "variables do not survive a block",
      needs: [processes],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const read = language.program(language.printAssigned("kept"));
        const result = await kit.run(executor, [language.program(language.assign("kept", "value")), read]);
        assert.notEqual(result.exitCode, 0);
        assert.equal(result.blocks.length, 2);
        assert.equal(result.stateLost, false, "there was no state to lose");
      },
    },
  ],
};
