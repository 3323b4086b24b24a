import assert from "node:assert/strict";
import { CheckpointError, type CheckpointReceipt, type CheckpointStore, type CodeExecutor } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceGroup } from "../conformance-case.ts";
import { MemoryStore } from "../memory-store.ts";
import { language, live, processes, stateful } from "../needs.ts";

const text = async ({ files }: CodeExecutor, path: string): Promise<string> =>
  Buffer.from(await files.read(path)).toString();

function take(
  kit: CaseContext,
  executor: CodeExecutor,
  options: { readonly store: CheckpointStore; readonly variables?: boolean },
): Promise<CheckpointReceipt> {
  const taking = executor.checkpoint?.(options);
  assert.ok(taking, "the executor has no method checkpoint");
  return kit.within("checkpoint()", taking);
}

/** What a checkpoint keeps, and what comes back in another executor. */
export const checkpoint: ConformanceGroup = {
  name: "checkpoint",
  cases: [
    {
      name: "files come back in another executor, and only what changed is stored again",
      async run(kit) {
        const store = new MemoryStore();
        const executor = await kit.shared();
        const large = Buffer.alloc(1_500_000, "0123456789");
        await executor.files.write("a/b c.txt", "first");
        await executor.files.write("large.bin", large);
        await executor.files.write("empty", "");
        const first = await take(kit, executor, { store });
        assert.deepEqual([first.files, first.bytes, first.variables], [3, 1_500_005, []]);
        await executor.files.write("a/b c.txt", "second");
        const second = await take(kit, executor, { store });
        assert.equal(second.newBytes, 6);
        const later = await kit.create({ restore: { store, id: second.id } });
        assert.deepEqual(await kit.paths(later), ["a/b c.txt", "empty", "large.bin"]);
        assert.equal(await text(later, "a/b c.txt"), "second");
        assert.equal(await text(later, "empty"), "");
        assert.ok(large.equals(await later.files.read("large.bin")), "the large file is not the same");
        assert.deepEqual([later.restored?.files, later.restored?.bytes], [3, 1_500_006]);
        const printed = await kit.succeedWith(later, kit.language.printFile("a/b c.txt"));
        assert.equal(printed.output.trim(), "second");
      },
    },
    {
      name: "a damaged checkpoint is an error, and nothing of it is restored",
      async run(kit) {
        const store = new MemoryStore();
        const executor = await kit.shared();
        await executor.files.write("a.txt", "a");
        await executor.files.write("z.txt", "zz");
        const { id } = await take(kit, executor, { store });
        const damaged = [...store.parts].find(([, bytes]) => bytes.length === 2);
        store.parts.set(damaged?.[0] ?? "", Buffer.from("zy"));
        let wanted = id;
        const open = (): ReturnType<CheckpointStore["open"]> => store.open(wanted);
        const later = await kit.create({ restore: { store: Object.assign(new MemoryStore(), { open }), id } });
        await kit.rejects(CheckpointError, "start() with a damaged checkpoint", later.start());
        assert.equal(later.restored, undefined);
        const nothing = await kit.create();
        wanted = (await take(kit, nothing, { store })).id;
        await kit.within("start() with a whole one", later.start());
        assert.deepEqual(await kit.paths(later), []);
      },
    },
    {
      name: "links that lead out of the workspace are not kept, nor what is behind them",
      async run(kit) {
        const store = new MemoryStore();
        const executor = await kit.create();
        const outside = await kit.outside(executor);
        await kit.succeedWith(
          executor,
          kit.language.writeFile(`${outside}/secret.txt`, "secret"),
          kit.language.symlink(outside, "linked"),
          kit.language.symlink(`${outside}/secret.txt`, "linked.txt"),
          kit.language.writeFile("kept.txt", "kept"),
        );
        const { id } = await take(kit, executor, { store });
        assertNoSecret(store);
        const later = await kit.create({ restore: { store, id } });
        assert.deepEqual(await kit.paths(later), ["kept.txt"]);
      },
    },
    {
      name: "code that swaps directories for links meanwhile gets nothing from outside into a checkpoint",
      needs: [processes, language("python"), live],
      async run(kit) {
        const store = new MemoryStore();
        const executor = await kit.create();
        const outside = await kit.outside(executor);
        await kit.succeedWith(executor, kit.language.writeFile(`${outside}/f`, "secret"));
        const code = `
import os, time
os.makedirs("d"); open("d/f", "w").write("inside"); os.symlink(${JSON.stringify(outside)}, "link")
open("ready", "w").close()
end = time.time() + 60
while not os.path.exists("over") and time.time() < end:
    os.rename("d", "away"); os.rename("link", "d"); os.rename("d", "link"); os.rename("away", "d")`;
        const swapping = kit.run(executor, { language: "python", code });
        await kit.eventually("the swaps begin", async () => (await kit.paths(executor)).includes("ready") || undefined);
        for (let round = 0; round < 8; round += 1) await take(kit, executor, { store });
        await executor.files.write("over", "");
        await swapping;
        assertNoSecret(store);
      },
    },
    {
      name: "a checkpoint that is cancelled while it writes a variable leaves the session usable",
      needs: [stateful, language("python")],
      async run(kit) {
        const executor = await kit.create();
        const slow = `import time
class Slow:
    def __reduce__(self):
        time.sleep(30)
slow = Slow()
`;
        await kit.succeed(executor, { language: "python", code: slow });
        const signal = AbortSignal.timeout(700);
        const taking = executor.checkpoint?.({ store: new MemoryStore(), variables: true, signal });
        assert.ok(taking, "the executor has no method checkpoint");
        await assert.rejects(kit.within("the cancelled checkpoint", taking), { name: "TimeoutError" });
        const { output } = await kit.succeed(executor, { language: "python", code: "print(6 * 7)" });
        assert.equal(output, "42\n");
      },
    },
    {
      name: "variables of Python come back, and those that cannot are listed",
      needs: [stateful, language("python")],
      async run(kit) {
        const store = new MemoryStore();
        const executor = await kit.create();
        const python = (code: string) => ({ language: "python", code });
        await kit.succeed(
          executor,
          python(`import math\nx = {"a": [1, 2.5, "three"]}\nbroken = (each for each in "abc")`),
        );
        const receipt = await take(kit, executor, { store, variables: true });
        assert.deepEqual([...receipt.variables].toSorted(), ["math", "x"]);
        assert.deepEqual(
          receipt.incomplete.map(({ kind, name }) => [kind, name]),
          [["variable", "broken"]],
        );
        assert.deepEqual(await kit.paths(executor), [], "something is left in the workspace");
        const later = await kit.create({ restore: { store, id: receipt.id } });
        const { output } = await kit.succeed(later, python(`print(x, math.floor(2.5), "broken" in globals())`));
        assert.equal(output.trim(), "{'a': [1, 2.5, 'three']} 2 False");
        assert.deepEqual([...(later.restored?.variables ?? [])].toSorted(), ["math", "x"]);
        assert.deepEqual(await kit.paths(later), [], "something is left in the restored workspace");
      },
    },
  ],
};

function assertNoSecret(store: MemoryStore): void {
  const contents = [...store.parts.values()].map((bytes) => Buffer.from(bytes).toString());
  assert.ok(!contents.some((content) => content.includes("secret")), "something from outside is in the checkpoint");
}
