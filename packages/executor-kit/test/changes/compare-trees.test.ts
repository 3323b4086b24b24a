import { describe, expect, it } from "vitest";
import { compareTrees } from "../../src/changes/compare-trees.ts";
import type { TreeEntry } from "../../src/checkpoints/workspace-tree.ts";

function file(name: string, more: Partial<TreeEntry> = {}): TreeEntry {
  return { path: name, type: "file", mode: 0o644, modifiedAt: 1, size: 1, identity: "1-1-1", ...more };
}

const whole = (...entries: TreeEntry[]) => ({ entries, isCut: false });

describe("what a listing before and one after say", () => {
  it("is never that nothing changed if they are not complete", async () => {
    const before = whole(file("a"), file("b"));
    expect(await compareTrees({ ...before, isCut: true }, whole(), "/w")).toEqual({
      created: [],
      changed: [],
      deleted: [],
      risky: [],
      truncated: true,
    });
    expect(await compareTrees(before, { ...whole(file("a", { identity: "2-1-2" })), isCut: true }, "/w")).toEqual({
      created: [],
      changed: ["a"],
      deleted: [],
      risky: [],
      truncated: true,
    });
    const unreadable = file("dir", { type: "unknown", identity: undefined });
    expect((await compareTrees(whole(unreadable), whole(unreadable), "/w")).truncated).toBe(true);
    expect(await compareTrees(before, before, "/w")).toEqual({ created: [], changed: [], deleted: [], risky: [] });
  });

  it("is only what is known of directories that cannot be looked at", async () => {
    const directory = (name: string, more: Partial<TreeEntry> = {}) => file(name, { type: "directory", ...more });
    const open = [directory("d"), file("d-e"), file("d/a"), file("d/Makefile"), file("d0"), file("dd/b")];
    const closed = [directory("d", { type: "unknown" }), file("d-e"), file("d0"), file("dd/b")];
    const nothing = { created: [], changed: [], deleted: [], risky: [], truncated: true };
    expect(await compareTrees(whole(...open), whole(...closed), "/w")).toEqual(nothing);
    const { risky, ...lists } = await compareTrees(whole(...closed), whole(...open), "/w");
    expect({ ...lists, risky: [] }).toEqual(nothing);
    expect(risky.map((each) => each.path)).toEqual(["d/Makefile"]);
    const fewer = closed.slice(0, 1);
    expect((await compareTrees(whole(...open), whole(...fewer), "/w")).deleted).toEqual(["d-e", "d0", "dd/b"]);
  });

  it("names risky files even among more than a result lists", async () => {
    const many = Array.from({ length: 20_000 }, (_, index) => file(`0${index}`));
    const { created, risky, truncated } = await compareTrees(
      whole(),
      whole(...many, file("z/.GIT/Hooks/post-checkout")),
      "/w",
    );
    expect([created.length, truncated]).toEqual([10_000, true]);
    expect(risky.map((each) => each.path)).toEqual(["z/.GIT/Hooks/post-checkout"]);
  });

  it("names what takes the place of a risky directory, and the parts of a repository without `.git`", async () => {
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
    const { risky } = await compareTrees(whole(), whole(...entries), "/w");
    expect(risky.map((each) => each.path)).toEqual([
      ".vscode",
      ".git",
      "bare/HEAD",
      "bare/config",
      "bare/objects",
      "bare/refs",
    ]);
  });

  it("names what makes a repository of files that were there, wherever its parts are", async () => {
    const before = [file("repo/HEAD"), file("repo/config"), file("repo/hooks/update"), file("other/HEAD")];
    const directory = (name: string) => file(name, { type: "directory" });
    const later = [
      ...before,
      directory("repo/objects"),
      directory("repo/refs"),
      file("other/commondir"),
      directory("common/objects"),
      directory("common/refs"),
      file("common/config"),
    ];
    const { risky } = await compareTrees(whole(...before), whole(...later), "/w");
    expect(risky.map((each) => each.path)).toEqual(["repo/objects", "repo/refs", "other/commondir", "common/config"]);
  });

  it("names what agents, editors, version control, builds and homes obey, whatever the case and line breaks", async () => {
    const names =
      `AGENTS.md sub/CLAUDE.md .cursorrules .cursor/rules/x.mdc .github/copilot-instructions.md .windsurf/x .mcp.json
      .bazelrc BUILD defs.bzl build.rs .cargo/config.toml rust-toolchain.toml x/sitecustomize/__init__.py .venv/bin/python
      .eslintrc .prettierrc.json .yarn/releases/yarn.cjs .pnp.cjs .ssh/config .ssh/authorized_keys .kube/config .hg/hgrc
      scripts/hooks/pre-commit .git/rebase-merge/git-rebase-todo .gitea/workflows/x.yml .run/x.run.xml main.tf flake.nix
      .gdbinit .Rprofile composer.json Directory.Build.props app.Dockerfile .helix/config.toml`.split(/\s+/);
    names.push("line\nbreak.pth", "line\nbreak.desktop");
    const plain = [
      "README.md",
      "src/main.py",
      "data/build.csv",
      "src/environment.ts",
      ".git/index",
      ".git/HEAD",
      ".git/refs/x",
    ];
    const { risky } = await compareTrees(
      whole(),
      whole(...names.map((each) => file(each)), ...plain.map((each) => file(each))),
      "/w",
    );
    expect(risky.map((each) => each.path)).toEqual(names);
  });

  it("take a time that grows only with the length of the paths", async () => {
    const units = ["a/", ".git/", ".git/hooks", "bin/activate", ".config.", "a".repeat(255)];
    const entries = units.map((unit) => file(`${unit.repeat(100_000 / unit.length)}x`));
    expect((await compareTrees(whole(), whole(...entries), "/w")).created).toHaveLength(6);
  });

  it("names programs that run with the rights of their owner", async () => {
    const entries = [file("rights", { mode: 0o755, isPrivileged: true }), file("text", { isPrivileged: true })];
    expect(await compareTrees(whole(file("rights", { mode: 0o755 })), whole(...entries), "/w")).toMatchObject({
      created: ["text"],
      changed: ["rights"],
      risky: [{ path: "rights", reason: expect.stringContaining("setuid") }],
    });
  });
});
