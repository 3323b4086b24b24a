import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { BackendUnavailableError, FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import { jupyterPythons, needs } from "@fenced/test-support";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { JupyterCodeExecutor } from "../../src/index.ts";
import { anyVersion } from "../support/local-server.ts";
import { PlainServer } from "../support/plain-server.ts";

const patience = { timeout: 120_000 };
const r = (code: string) => ({ language: "R", code });

/** The executors' directories. Servers leave one of their own, for checkpoints. */
const workspaces = async (server: PlainServer) =>
  (await readdir(server.directory)).filter((name) => name.startsWith("fenced-"));

describe.each(anyVersion)("files of a kernel that is not Python (%s)", (version) => {
  describe("through the contents API", needs(version, "irkernel"), () => {
    let server: PlainServer;
    let executor: JupyterCodeExecutor;
    let local = "";
    beforeAll(async () => {
      server = await PlainServer.start(jupyterPythons[version]);
    }, 120_000);
    afterAll(() => server[Symbol.asyncDispose](), 120_000);
    beforeEach(async () => {
      executor = new JupyterCodeExecutor({ server: server.settings, kernelName: "ir" });
      local = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
    });
    afterEach(async () => {
      await executor.stop();
      await rm(local, { recursive: true });
    });

    it("are shared with the code byte for byte, and deleted with the executor", patience, async () => {
      const bytes = Uint8Array.from({ length: 1024 }, (_value, index) => index);
      await executor.files.write("deep/er/grüße %41 #1?.bin", bytes);
      const code = `x <- readBin("deep/er/grüße %41 #1?.bin", "raw", 2000); writeBin(rev(x), "back.bin"); cat(length(x))`;
      expect(await executor.executeCodeBlocks([r(code)])).toMatchObject({ exitCode: 0, output: "1024" });
      expect(await executor.files.read("back.bin")).toEqual(bytes.toReversed());
      expect(await executor.files.list()).toEqual([
        { path: "back.bin", size: 1024 },
        { path: "deep/er/grüße %41 #1?.bin", size: 1024 },
      ]);
      expect((await executor.files.list("deep")).map((file) => file.path)).toEqual(["deep/er/grüße %41 #1?.bin"]);
      expect(await workspaces(server)).toHaveLength(1);
      await executor.stop();
      expect(await workspaces(server)).toEqual([]);
    });

    it("may be large, empty, text or notebooks, and can be overwritten", patience, async () => {
      const large = randomBytes(10_000_000);
      await writeFile(path.join(local, "large.bin"), large);
      await writeFile(path.join(local, "empty"), "");
      await executor.files.upload([path.join(local, "large.bin"), path.join(local, "empty")]);
      const [copy = "", empty = ""] = await executor.files.download(["large.bin", "empty"], path.join(local, "to"));
      expect((await readFile(copy)).equals(large)).toBe(true);
      expect(await readFile(empty)).toHaveLength(0);
      for (const data of [large.subarray(0, 5_000_000), "a\r\nb\n", "", "\uFEFFgrüße 🎈"]) {
        await executor.files.write("x.ipynb", data);
        expect(Buffer.from(await executor.files.read("x.ipynb")).equals(Buffer.from(data))).toBe(true);
      }
    });

    it("can be removed, as can whole directories", patience, async () => {
      for (const file of ["a/b/1", "a/2", "3"]) await executor.files.write(file, file);
      await executor.files.remove("a");
      await executor.files.remove("3");
      expect(await executor.files.list()).toEqual([]);
    });

    it("that are missing, outside or not files cause clear errors", patience, async () => {
      const { files } = executor;
      await files.write("a/b", "");
      for (const call of [
        () => files.read("no"),
        () => files.remove("no"),
        () => files.list("no"),
        () => files.download(["no"], local),
      ]) {
        await expect(call()).rejects.toSatisfy(FileNotFoundError.isInstance);
      }
      expect(await readdir(local)).toEqual([]);
      for (const file of ["../x", "/etc/passwd"]) {
        await expect(files.write(file, "")).rejects.toSatisfy(WorkspacePathError.isInstance);
      }
      for (const call of [() => files.read("."), () => files.read("a"), () => files.remove(".")]) {
        await expect(call()).rejects.toSatisfy(InvalidInputError.isInstance);
      }
      await expect(files.write(".hidden", "")).rejects.toThrow(/allow_hidden/);
    });

    it("with circular links cause an error instead of an endless list", patience, async () => {
      await executor.start();
      const [own = ""] = await workspaces(server);
      const workspace = path.join(server.directory, own);
      await mkdir(path.join(workspace, "deep"));
      for (const name of ["one", "two"]) await symlink("..", path.join(workspace, "deep", name));
      await expect(executor.files.list()).rejects.toThrow(/directories deep at .*circular/);
    });

    it("are kept in a given workDir, which executors can share", patience, async () => {
      const options = { server: server.settings, kernelName: "ir", workDir: "shared/deep" };
      await using one = new JupyterCodeExecutor(options);
      await using other = new JupyterCodeExecutor(options);
      await one.files.write("kept.txt", "kept");
      expect((await other.executeCodeBlocks([r('cat(readLines("kept.txt", warn = FALSE))')])).output).toBe("kept");
      await one.stop();
      await other.stop();
      expect(await readFile(path.join(server.directory, "shared/deep/kept.txt"), "utf8")).toBe("kept");
      await rm(path.join(server.directory, "shared"), { recursive: true });
    });

    it("cannot be in an absolute workDir, which the server might resolve differently", patience, async () => {
      await using absolute = new JupyterCodeExecutor({ server: server.settings, kernelName: "ir", workDir: "/tmp/x" });
      await expect(absolute.start()).rejects.toThrow(/absolute.*relative to the server's root/);
    });
  });
});

describe.each(anyVersion)("a server that deletes only empty directories (%s)", (version) => {
  it("keeps the targets of links", { ...patience, ...needs(version, "irkernel") }, async () => {
    await using server = await PlainServer.start(jupyterPythons[version], "careful");
    const elsewhere = path.join(server.directory, "elsewhere");
    await mkdir(path.join(elsewhere, "deep"), { recursive: true });
    for (const file of ["kept", "deep/kept"]) await writeFile(path.join(elsewhere, file), "");
    await using executor = new JupyterCodeExecutor({ server: server.settings, kernelName: "ir" });
    await executor.executeCodeBlocks([r('invisible(file.symlink("../elsewhere", "link"))')]);
    await executor.files.write("full/file", "");
    for (const directory of ["link", "full"]) {
      await expect(executor.files.remove(directory)).rejects.toThrow(/always_delete_dir/);
    }
    const [own = ""] = await workspaces(server);
    await rm(path.join(server.directory, own, "full"), { recursive: true });
    await executor.stop();
    expect((await readdir(elsewhere, { recursive: true })).toSorted()).toEqual(["deep", "deep/kept", "kept"]);
  });
});

describe.each(anyVersion)("a server without a contents API (%s)", (version) => {
  describe("like a kernel gateway", needs(version, "irkernel"), () => {
    let server: PlainServer;
    beforeAll(async () => {
      server = await PlainServer.start(jupyterPythons[version], "kernels");
    }, 120_000);
    afterAll(() => server[Symbol.asyncDispose](), 120_000);

    it("supports files and all languages with a Python kernel", patience, async () => {
      await using executor = new JupyterCodeExecutor({ server: server.settings });
      const bytes = Uint8Array.from({ length: 1024 }, (_value, index) => index);
      await executor.files.write("deep/in.bin", bytes);
      const result = await executor.executeCodeBlocks([
        { language: "python", code: "data = open('deep/in.bin', 'rb').read()" },
        { language: "python", code: "open('out.bin', 'wb').write(data[::-1])\nprint(len(data))" },
        { language: "bash", code: "ls -R" },
      ]);
      expect(result).toMatchObject({ exitCode: 0, output: "1024\n.:\ndeep\nout.bin\n\n./deep:\nin.bin\n" });
      expect(await executor.files.read("out.bin")).toEqual(bytes.toReversed());
      await executor.restart();
      expect((await executor.files.list()).map((file) => file.path)).toEqual(["deep/in.bin", "out.bin"]);
    });

    it("runs other kernels, and reports that their files need a contents API", patience, async () => {
      await using executor = new JupyterCodeExecutor({ server: server.settings, kernelName: "ir" });
      expect((await executor.executeCodeBlocks([r("cat(6 * 7)")])).output).toBe("42");
      const { files } = executor;
      for (const call of [
        () => files.list(),
        () => files.read("a"),
        () => files.write("a", ""),
        () => files.remove("a"),
      ]) {
        await expect(call()).rejects.toThrow(/no contents API.*Use a Python kernel/);
        await expect(call()).rejects.toSatisfy(BackendUnavailableError.isInstance);
      }
      await using placed = new JupyterCodeExecutor({ server: server.settings, kernelName: "ir", workDir: "work" });
      await expect(placed.start()).rejects.toThrow(/no contents API/);
    });

    it("lists its kernels when asked for an unknown one", patience, async () => {
      await using executor = new JupyterCodeExecutor({ server: server.settings, kernelName: "no-such-kernel" });
      await expect(executor.start()).rejects.toThrow(/no kernel named "no-such-kernel".*(?:ir.*python3|python3.*ir)/);
    });
  });
});
