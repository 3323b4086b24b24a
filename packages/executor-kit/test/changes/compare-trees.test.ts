import { describe, expect, it } from "vitest";
import { compareTrees } from "../../src/changes/compare-trees.ts";
import type { TreeEntry } from "../../src/checkpoints/workspace-tree.ts";

function file(name: string, more: Partial<TreeEntry> = {}): TreeEntry {
  return { path: name, type: "file", mode: 0o644, modifiedAt: 1, size: 1, identity: "1-1-1", ...more };
}

const whole = (...entries: TreeEntry[]) => ({ entries, isCut: false });

describe("what a listing before and one after say", () => {
  it("is never that nothing changed if they are not complete", () => {
    const before = whole(file("a"), file("b"));
    expect(compareTrees({ ...before, isCut: true }, whole(), "/w")).toEqual({
      created: [],
      changed: [],
      deleted: [],
      risky: [],
      truncated: true,
    });
    expect(compareTrees(before, { ...whole(file("a", { identity: "2-1-2" })), isCut: true }, "/w")).toEqual({
      created: [],
      changed: ["a"],
      deleted: [],
      risky: [],
      truncated: true,
    });
    const unreadable = file("dir", { type: "unknown", identity: undefined });
    expect(compareTrees(whole(unreadable), whole(unreadable), "/w").truncated).toBe(true);
    expect(compareTrees(before, before, "/w")).toEqual({ created: [], changed: [], deleted: [], risky: [] });
  });

  it("names risky files even among more than a result lists", () => {
    const many = Array.from({ length: 20_000 }, (_, index) => file(`0${index}`));
    const { created, risky, truncated } = compareTrees(
      whole(),
      whole(...many, file("z/.GIT/Hooks/post-checkout")),
      "/w",
    );
    expect([created.length, truncated]).toEqual([10_000, true]);
    expect(risky.map((each) => each.path)).toEqual(["z/.GIT/Hooks/post-checkout"]);
  });

  it("names what takes the place of a risky directory, and the parts of a repository without `.git`", () => {
    const entries = [
      file(".vscode", { type: "link", target: "elsewhere" }),
      file(".git", {}),
      file("bare/HEAD"),
      file("bare/config"),
      file("bare/objects", { type: "directory" }),
      file("bare/refs", { type: "directory" }),
      file("src/config"),
      file("src/objects.py"),
      file("inside", { type: "link", target: "src" }),
    ];
    const { risky } = compareTrees(whole(), whole(...entries), "/w");
    expect(risky.map((each) => each.path)).toEqual([".vscode", ".git", "bare/config"]);
  });

  it("names programs that run with the rights of their owner", () => {
    const entries = [file("rights", { mode: 0o755, isPrivileged: true }), file("text", { isPrivileged: true })];
    expect(compareTrees(whole(file("rights", { mode: 0o755 })), whole(...entries), "/w")).toMatchObject({
      created: ["text"],
      changed: ["rights"],
      risky: [{ path: "rights", reason: expect.stringContaining("setuid") }],
    });
  });
});
