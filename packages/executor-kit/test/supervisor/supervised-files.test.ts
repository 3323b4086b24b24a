import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  chmod,
  chown,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { RemoteFiles } from "@fenced/executor-kit";
import {
  connectSupervisor,
  SupervisedFiles,
  supervisorLoader,
  type Supervisor,
  type SupervisorConfig,
} from "@fenced/executor-kit/supervisor";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { TextSink } from "../support/text-sink.ts";

/** Prints what it hears at an abstract socket, whose name is its argument. */
const keeperProgram = `
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0" + sys.argv[1])
listener.listen(1)
connection = listener.accept()[0]
while connection.recv(1):
    print("beat", flush=True)
print("end", flush=True)
`;

/** A supervisor started by the short command, and files through it. */
async function opened({ workspace: given, ...config }: Partial<SupervisorConfig> = {}, unprivileged = false) {
  const workspace = given ?? (await temporaryDirectory());
  const parent = await temporaryDirectory();
  const directory = path.join(parent, "session");
  const { command, program } = supervisorLoader({ directory, workspace, programs: ["python3"], ...config });
  const [name, ...words] = command;
  // Root may look at everything, so the programs of a test about permissions belong to somebody else.
  const owner = process.getuid?.() === 0 && unprivileged ? { uid: 65_534, gid: 65_534 } : {};
  if (owner.uid !== undefined) {
    for (const each of [workspace, parent]) await chown(each, owner.uid, owner.gid);
  }
  const child = spawn(name, words, { ...owner, stdio: ["pipe", "pipe", "pipe"] });
  onTestFinished(async () => {
    child.stdin.destroy();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  child.stdin.write(program);
  const { supervisor, inventory } = await connectSupervisor(child);
  if (!supervisor) throw new Error("There is no Python.");
  const python = inventory.programs.get("python3") ?? "";
  const place = { workspace, python, filePrefix: ".own-", supervisor: async () => supervisor };
  const access = new SupervisedFiles(place);
  return { supervisor, command, workspace, child, access, files: new RemoteFiles(access) };
}

async function run(supervisor: Supervisor, file: { name: string; content: string; keep?: boolean }, script: string) {
  const output = new TextSink();
  await supervisor.run({ argv: ["sh", "-c", script], env: {}, file }, output);
  return output.stdout + output.stderr;
}

describe("a tree that a supervisor creates", needs("python3"), () => {
  it("has what follows an entry that the file system cannot have", async () => {
    const { access, workspace } = await opened();
    const long = "x".repeat(300);
    const lost: string[] = [];
    const entries = async function* () {
      for (const name of ["before", long, `${long}/below`, "after"]) {
        const content = async function* () {
          yield Buffer.from("content");
        };
        const facts = { type: "file", mode: 0o600, modifiedAt: 8.64e15, target: "", size: 7 } as const;
        yield { path: name, ...facts, content };
      }
    };
    await access.tree.create({ entries }, (name) => lost.push(name));
    expect(lost).toEqual([long, `${long}/below`]);
    for (const name of ["before", "after"]) {
      expect(await readFile(path.join(workspace, name), "utf8")).toBe("content");
    }
    const read: unknown[] = [];
    await access.tree.read([{ path: "after", size: 3, known: [] }], async (_, parts) => {
      if (typeof parts === "string") throw new Error(parts);
      for (let step = await parts.next(); ; step = await parts.next()) {
        read.push(step.value);
        if (step.done === true) break;
      }
    });
    expect(read).toEqual([new Uint8Array(Buffer.from("con")), { isChanged: true, state: undefined, size: 7 }]);
  });
});

describe("a supervisor that is started by a short command", needs("python3"), () => {
  it("writes a program's file, removes it unless `keep` is set, and overwrites nothing", async () => {
    const { supervisor, workspace, command } = await opened();
    expect(command.join(" ").length).toBeLessThan(1500);
    const content = "x".repeat(600_000);
    expect(await run(supervisor, { name: "a.txt", content }, "wc -c <a.txt")).toMatch(/^ *600000\n$/);
    expect(await readdir(workspace)).toEqual([]);
    expect(await run(supervisor, { name: "b.txt", content: "kept", keep: true }, "cat b.txt")).toBe("kept");
    await symlink("/tmp", path.join(workspace, "link"));
    for (const name of ["b.txt", "link"]) {
      await expect(run(supervisor, { name, content: "other" }, "true")).rejects.toThrow(
        /could not be written.*exists/s,
      );
    }
    expect(await readFile(path.join(workspace, "b.txt"), "utf8")).toBe("kept");
  });

  it("passes signs of life on to its keeper, and closes that connection when it ends", async () => {
    const name = `fenced-test-${randomUUID()}`;
    const keeper = spawn("python3", ["-c", keeperProgram, name], { stdio: ["ignore", "pipe", "inherit"] });
    const said = createInterface({ input: keeper.stdout })[Symbol.asyncIterator]();
    const { supervisor, child } = await opened({ keeper: name });
    await supervisor.ping();
    expect(await said.next()).toMatchObject({ value: "beat" });
    child.stdin.end();
    let last = "";
    for (let step = await said.next(); step.done !== true; step = await said.next()) last = step.value;
    expect(last).toBe("end");
  });
});

describe("SupervisedFiles", needs("python3"), () => {
  it("writes, reads, lists and removes files", async () => {
    const { files, workspace } = await opened();
    const content = Buffer.alloc(9_000_001, "0123456789");
    await files.write("a/b.bin", content);
    await files.write("empty", "");
    expect(await files.list()).toEqual([
      { path: "a/b.bin", type: "file", size: 9_000_001 },
      { path: "empty", type: "file", size: 0 },
    ]);
    expect(await files.list("a")).toEqual([{ path: "a/b.bin", type: "file", size: 9_000_001 }]);
    expect(Buffer.compare(await files.read("a/b.bin"), content)).toBe(0);
    const { mtime, mode } = await stat(path.join(workspace, "empty"));
    expect(await files.stat("empty")).toEqual({
      path: "empty",
      type: "file",
      size: 0,
      modifiedAt: mtime,
      mode: mode & 0o777,
    });
    expect(await files.stat("a")).toMatchObject({ type: "directory", size: 0 });
    await files.remove("a");
    await files.remove("empty");
    expect(await readdir(workspace)).toEqual([]);
  });

  it("moves one name of a file to another one, which alone stays", async () => {
    const { files, workspace } = await opened();
    await files.write("a", "text");
    await files.makeDirectory("d");
    for (const name of ["b", "d/a", "A"]) await link(path.join(workspace, "a"), path.join(workspace, name));
    await files.move("a", "b");
    await files.move("d/a", "b");
    await files.move("b", "b");
    expect((await files.list()).map((file) => file.path)).toEqual(["A", "b"]);
    expect(Buffer.from(await files.read("b")).toString()).toBe("text");
  });

  it("has no time for a file whose time no date can have", async () => {
    // A tmpfs keeps any time.
    const workspace = await mkdtemp("/dev/shm/fenced-test-");
    onTestFinished(() => rm(workspace, { recursive: true }));
    const { files } = await opened({ workspace });
    await files.write("file", "text");
    await utimes(path.join(workspace, "file"), 9e12, 9e12);
    const found = await files.stat("file");
    expect(found).toMatchObject({ type: "file", size: 4 });
    expect(found).not.toHaveProperty("modifiedAt");
  });

  it("says what it cannot look at, and lists the rest", async () => {
    const { access, files, supervisor, workspace } = await opened({}, true);
    onTestFinished(async () => {
      for (const each of ["data", "secrets"]) await chmod(path.join(workspace, each), 0o700);
    });
    for (const file of ["data/deep/file", "secrets/key", "secrets/more/key", "seen"]) await files.write(file, "x");
    await run(supervisor, { name: "script", content: "" }, "ln -s data link; chmod 000 data; chmod -R 600 secrets");
    const unlisted: string[] = [];
    for await (const { path: file, state } of access.states(".")) if (state === undefined) unlisted.push(file);
    expect(unlisted.toSorted()).toEqual(["data", "secrets/key", "secrets/more"]);
    expect(await files.list()).toEqual([{ path: "seen", type: "file", size: 1 }]);
    expect(await files.diskUsage?.(1_000_000)).toBe(512);
    await expect(files.list("data")).rejects.toThrow(/data/);
  });

  it("ends the program that sends files when its reader leaves early", async () => {
    const { access, files, workspace } = await opened();
    for (const file of ["a", "b"]) await files.write(file, Buffer.alloc(9_000_000));
    const sending = async () => {
      const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
      const commands = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "")));
      return commands.filter((command) => command.includes(`\0${workspace}\0contents\0`)).length;
    };
    for await (const { file } of access.contents(await files.list())) {
      expect([file.path, await sending()]).toEqual(["a", 1]);
      break;
    }
    expect(await sending()).toBe(0);
  });

  it("removes deep and wide directories", async () => {
    const { files, workspace } = await opened();
    const top = path.join(workspace, "top");
    await mkdir(path.join(top, ...Array.from({ length: 200 }, () => "deep")), { recursive: true });
    for (let each = 0; each < 500; each += 1) {
      await mkdir(path.join(top, `folder ${each}`));
      await writeFile(path.join(top, `file ${each}`), "x");
      await writeFile(path.join(top, `folder ${each}`, "file"), "x");
    }
    await symlink(workspace, path.join(top, "link"));
    await files.write("kept", "x");
    await files.remove("top");
    expect(await readdir(workspace)).toEqual(["kept"]);
  });

  it("keeps the mode of a file that it replaces", async () => {
    const { files, workspace } = await opened();
    await writeFile(path.join(workspace, "run"), "old", { mode: 0o750 });
    await files.write("run", "new");
    expect((await stat(path.join(workspace, "run"))).mode & 0o777).toBe(0o750);
  });

  it("follows links inside the workspace, but none that lead out or nowhere", async () => {
    const { files, workspace } = await opened();
    const outside = await temporaryDirectory();
    await writeFile(path.join(outside, "secret"), "secret");
    await mkdir(path.join(workspace, "real"));
    await writeFile(path.join(workspace, "real/file"), "inside");
    await symlink("real", path.join(workspace, "link"));
    await symlink(outside, path.join(workspace, "out"));
    await symlink("nowhere", path.join(workspace, "dangling"));
    expect(String(Buffer.from(await files.read("link/file")))).toBe("inside");
    await files.write("link/file", "changed");
    expect(await readFile(path.join(workspace, "real/file"), "utf8")).toBe("changed");
    for (const file of ["out/secret", "dangling"]) {
      for (const attempt of [() => files.read(file), () => files.write(file, "x"), () => files.stat(file)]) {
        await expect(attempt()).rejects.toMatchObject({ code: "path_outside_workspace" });
      }
    }
    await expect(files.remove("out/secret")).rejects.toMatchObject({ code: "path_outside_workspace" });
    await files.remove("out");
    expect(await readFile(path.join(outside, "secret"), "utf8")).toBe("secret");
  });

  it("rejects missing files and paths that are not files", async () => {
    const { files } = await opened();
    await files.write("file", "x");
    for (const attempt of [
      () => files.read("none"),
      () => files.stat("none"),
      () => files.remove("none"),
      () => files.list("none"),
      () => files.read("file/x"),
    ]) {
      await expect(attempt()).rejects.toMatchObject({ code: "file_not_found" });
    }
    await files.write("folder/x", "x");
    for (const attempt of [
      () => files.read("folder"),
      () => files.write("folder", "x"),
      () => files.write("file/x", "x"),
    ]) {
      await expect(attempt()).rejects.toMatchObject({ code: "invalid_input" });
    }
  });
});
