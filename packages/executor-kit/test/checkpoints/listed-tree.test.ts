import { InvalidInputError, type FileEntry, type FileFeature } from "@fenced/core";
import { RemoteFiles } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";
import { ListedTree } from "../../src/checkpoints/listed-tree.ts";
import type { PlannedEntry, TreePlan } from "../../src/checkpoints/workspace-tree.ts";

/** A workspace that has no trees: files in memory, of which `full` cannot be written. */
function shelf(given: Readonly<Record<string, string>>, features: readonly FileFeature[] = []) {
  const files = new Map(Object.entries(given));
  const modes = new Map<string, number | undefined>();
  const tree = new ListedTree(
    new RemoteFiles({
      features,
      async *list(): AsyncGenerator<FileEntry, void, void> {
        for (const [path, { length }] of files) yield { path, type: "file", size: length };
      },
      stat: async (path) => ({ path, type: "file", size: files.get(path)?.length ?? 0 }),
      async *content(path) {
        yield Buffer.from(files.get(path) ?? "");
      },
      async put(path, content, mode) {
        if (path === "full") throw new Error("no space");
        modes.set(path, mode);
        let text = "";
        for await (const chunk of content) text += Buffer.from(chunk).toString();
        files.set(path, text);
      },
      async remove(path) {
        for (const file of files.keys()) if (file === path || file.startsWith(`${path}/`)) files.delete(file);
      },
    }),
  );
  return { files, modes, tree };
}

function planOf(...paths: readonly string[]): TreePlan {
  return planWith(0o644, paths);
}

function planWith(mode: number, paths: readonly string[]): TreePlan {
  return {
    async *entries(): AsyncGenerator<PlannedEntry, void, void> {
      for (const path of paths) {
        const content = async function* (): AsyncGenerator<Uint8Array, void, void> {
          yield Buffer.from("new");
        };
        yield { path, type: "file", mode, modifiedAt: 0, target: "", size: 3, content };
      }
    },
  };
}

describe("a workspace whose files can only be listed, read and written", () => {
  it.each([
    ["data", { "data/mine": "1" }],
    ["mine/data", { mine: "1" }],
  ])("restores nothing if something is in the way of %s", async (path, given) => {
    const { files, tree } = shelf(given);
    await expect(tree.create(planOf("first", path), () => {})).rejects.toThrow(InvalidInputError);
    expect(Object.fromEntries(files)).toEqual(given);
  });

  it("keeps what was there before if a restore fails, and removes what was not", async () => {
    const { files, tree } = shelf({ mine: "old", other: "1" });
    await expect(tree.create(planOf("mine", "created", "full"), () => {})).rejects.toThrow("no space");
    expect(Object.fromEntries(files)).toEqual({ mine: "new", other: "1" });
  });

  it("keeps programs executable, or says that they no longer are", async () => {
    for (const [features, lost, kept] of [
      [[], ["tool"], undefined],
      [["modes"], [], 0o755],
    ] as const) {
      const { modes, tree } = shelf({}, features);
      const told: string[] = [];
      await tree.create(planWith(0o755, ["tool"]), (path) => told.push(path));
      await tree.create(planOf("text"), (path) => told.push(path));
      expect(told).toEqual(lost);
      expect([...modes]).toEqual([
        ["tool", kept],
        ["text", undefined],
      ]);
    }
  });

  it("says how large a file is that has grown since it was listed", async () => {
    const { tree } = shelf({ log: "1234" });
    await tree.read([{ path: "log", size: 2, known: [] }], async (_, content) => {
      if (typeof content === "string") throw new Error(content);
      await content.next();
      expect(await content.next()).toEqual({ done: true, value: { state: undefined, isChanged: true, size: 4 } });
    });
  });
});
