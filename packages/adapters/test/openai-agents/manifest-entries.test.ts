import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { directoryStore } from "@fenced/checkpoints";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { Manifest, NoopSnapshotSpec, type Entry } from "@openai/agents-core/sandbox";
import { describe, expect, it } from "vitest";
import { newClient, newSession, temporary } from "./support.ts";

const file = (content: string): Entry => ({ type: "file", content });

describe("a manifest", () => {
  it("creates files and directories, with permissions", needs("bash"), async () => {
    const { exec, state } = await bound({
      "run.sh": file("echo ran"),
      notes: { type: "file", content: "text", permissions: "-rw-r-----" },
      closed: { type: "dir", permissions: 0o500, children: { inside: file("kept") } },
      empty: { type: "dir" },
    });
    expect(await exec("./run.sh; stat -c '%a %n' notes closed; cat closed/inside; ls -d empty")).toBe(
      "ran\n640 notes\n500 closed\nkeptempty\n",
    );
    expect(Object.keys(state.manifest.entries)).toEqual(["run.sh", "notes", "closed", "empty"]);
    await exec("chmod 700 closed");
  });

  it("copies files and directories of this host, without links", needs("bash"), async () => {
    const source = await temporary();
    await mkdir(join(source, "tree/deep"), { recursive: true });
    await writeFile(join(source, "tree/deep/run"), "echo deep");
    await chmod(join(source, "tree/deep/run"), 0o755);
    await writeFile(join(source, "one"), "alone");
    const extraPathGrants = [{ path: source }];
    const session = await newSession({
      manifest: {
        extraPathGrants,
        entries: {
          tree: { type: "local_dir", src: join(source, "tree") },
          "d/one": { type: "local_file", src: join(source, "one") },
        },
      },
    });
    expect(await session.exec({ cmd: "tree/deep/run; cat d/one" })).toMatchObject({ stdout: "deep\nalone" });

    await symlink("/etc/passwd", join(source, "tree/link"));
    await symlink("/etc", join(source, "etc"));
    const refused = async (entry: Entry, why: string, grants = extraPathGrants): Promise<void> => {
      const other = newSession({ manifest: { extraPathGrants: grants, entries: { x: entry } } });
      await expect(other).rejects.toThrow(why);
    };
    await refused({ type: "local_dir", src: join(source, "tree") }, "is a link");
    await refused({ type: "local_file", src: join(source, "etc/passwd") }, "extraPathGrants");
    await refused({ type: "local_file", src: "/etc/passwd" }, "extraPathGrants");
    await refused({ type: "local_file", src: join(source, "one") }, "extraPathGrants", []);
    await refused({ type: "local_file", src: join(source, "none") }, "There is no");
    await refused({ type: "local_dir", src: join(source, "one") }, "not a directory");
  });

  it("clones repositories in the sandbox", needs("bash"), async () => {
    const source = await temporary();
    const git = `git -c init.defaultBranch=main -c user.name=a -c user.email=a@b`;
    await using maker = new LocalCommandLineCodeExecutor({ workDir: source });
    const { output } = await maker.executeCodeBlocks([
      {
        language: "bash",
        code: `${git} init -q . && mkdir sub && echo one > sub/file && ${git} add . && ${git} commit -qm one && git rev-parse HEAD &&
git config uploadpack.allowAnySHA1InWant true && git checkout -qb other && echo two > sub/file && ${git} commit -qam two && git checkout -q main`,
      },
    ]);
    const commit = output.trim();
    expect(commit).toMatch(/^[\da-f]{40}$/);
    const repo = `file://${source}`;
    const { exec } = await bound({
      whole: { type: "git_repo", repo },
      other: { type: "git_repo", repo, ref: "other" },
      commit: { type: "git_repo", repo, ref: commit },
      "deep/part": { type: "git_repo", repo, ref: "other", subpath: "sub" },
    });
    expect(await exec("cat whole/sub/file other/sub/file commit/sub/file deep/part/file; ls deep/part")).toBe(
      "one\ntwo\none\ntwo\nfile\n",
    );
    const none = newSession({ manifest: { entries: { x: { type: "git_repo", repo: "file:///nowhere" } } } });
    await expect(none).rejects.toThrow("could not be cloned: ");
  });

  it("is refused before anything is started, if it asks for what a sandbox has not", async () => {
    const store = directoryStore(await temporary());
    const client = newClient({
      createExecutor: () => {
        throw new Error("must not be started");
      },
      snapshots: store,
    });
    const refused = async (manifest: Manifest, why: string): Promise<void> => {
      await expect(client.create({ manifest })).rejects.toThrow(why);
    };
    await refused(new Manifest({ entries: { m: { type: "mount", source: "/data" } } }), "option `mounts`");
    await refused(
      new Manifest({ entries: { d: { type: "dir", children: { m: { type: "s3_mount", bucket: "b" } } } } }),
      "option `mounts`",
    );
    await refused(new Manifest({ users: ["ada"] }), "one user");
    await refused(new Manifest({ entries: { f: { type: "file", content: "", group: { name: "g" } } } }), "one user");
    const secret: Entry = { type: "file", content: "secret", ephemeral: true };
    await refused(new Manifest({ entries: { secret } }), "snapshots keep all files");
    await expect(client.create({ snapshot: { type: "local" } })).rejects.toThrow("option `snapshots`");
    await expect(client.create({ options: { image: "x" } })).rejects.toThrow("createExecutor");
    await expect(
      client.create({ manifest: { entries: { secret } }, snapshot: new NoopSnapshotSpec() }),
    ).rejects.toThrow("must not be started");
  });

  it("has the workspace's root, unless it asks for another one", async () => {
    const session = await newSession();
    expect(session.state.manifest.root).toMatch(/^\//);
    expect(await session.exec({ cmd: "pwd" })).toMatchObject({ stdout: `${session.state.manifest.root}\n` });
    await expect(newSession({ manifest: { root: "/elsewhere" } })).rejects.toThrow("Leave out the manifest's `root`");
  });

  it("can get more entries and variables later", async () => {
    const session = await newSession({ manifest: { environment: { A: "1" } } });
    const { root } = session.state.manifest;
    await session.materializeEntry({ path: `${root}/skill/SKILL.md`, entry: file("read me") });
    await session.applyManifest(new Manifest({ environment: { B: async () => "2" }, entries: { more: file("more") } }));
    expect(await session.exec({ cmd: 'echo "$A$B"; read -r line < skill/SKILL.md || echo "$line"' })).toMatchObject({
      stdout: "12\nread me\n",
    });
    expect(Object.keys(session.state.manifest.entries)).toEqual(["skill/SKILL.md", "more"]);
    await expect(session.materializeEntry({ path: "../out", entry: file("") })).rejects.toThrow(/\.\.|escape|relative/);
    const ephemeral: Entry = { type: "file", content: "secret", ephemeral: true };
    await session.materializeEntry({ path: "secret", entry: ephemeral });
    await expect(session.persistWorkspace()).rejects.toThrow('"secret" is ephemeral');
  });
});

async function bound(entries: Record<string, Entry>) {
  const session = await newSession({ manifest: { entries } });
  const exec = async (cmd: string): Promise<string> => (await session.exec({ cmd })).output;
  return { exec, state: session.state };
}
