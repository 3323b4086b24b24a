import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FencedError, FileNotFoundError, InvalidInputError, type CodeBlock, type CodeExecutor } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { language, processes, specialFiles, startsProcesses } from "../needs.ts";
import { settles } from "../observe/settles.ts";

const python = (code: string): CodeBlock => ({ language: "python", code });

/** A block that leaves a program running, and waits until that program has created the file `ready`. */
const inBackground = (program: string): CodeBlock =>
  python(`
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", ${JSON.stringify(program)}], start_new_session=True,
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not os.path.exists("ready"): time.sleep(0.02)
os.remove("ready")
`);

/**
 * Swaps `tree/swapped` and `link`, which leads to `outside`, for a few minutes, atomically where the system supports
 * that. Recreates a link that was removed.
 */
const exchange = (outside: string) => `
import ctypes, os, time
libc = ctypes.CDLL(None)
end = time.time() + 120
number = 0
open("ready", "w").close()
while time.time() < end:
    try: libc.renameat2(-100, b"tree/swapped", -100, b"link", 2)
    except AttributeError: break
    if os.path.islink("link") or os.path.islink("tree/swapped"): continue
    number += 1
    try:
        if os.path.lexists("link"): os.rename("link", "old%d" % number)
        os.symlink(${JSON.stringify(outside)}, "link")
    except OSError: pass
`;

/** Replaces each of the executor's own files that appears with something else, for a few minutes. */
const replaceOwnFiles = (outside: string) => `
import os, time
end = time.time() + 60
number = 0
open("ready", "w").close()
while time.time() < end:
    for name in os.listdir("."):
        if not name.startswith(".") or name.startswith(".new"): continue
        number += 1
        new = ".new%d" % number
        try:
            if number % 3 == 0: os.mkfifo(new)
            elif number % 3 == 1: os.symlink(${JSON.stringify(`${outside}/precious`)}, new)
            else: os.mkdir(new)
            try: os.rename(new, name)
            except OSError:
                os.remove(name); os.rename(new, name)
        except OSError: pass
`;

/** Turns every file in the work directory, including this program's own, into a named pipe. */
const pipesEverywhere = `
import os
for top, directories, names in os.walk("."):
    for name in names:
        os.remove(os.path.join(top, name)); os.mkfifo(os.path.join(top, name))
for place in ("node_modules/functions", "functions"):
    os.makedirs(place, exist_ok=True)
    for name in (".fenced-functions", "package.json", "index.js", "__init__.py"):
        if not os.path.exists(os.path.join(place, name)): os.mkfifo(os.path.join(place, name))
print("done", flush=True)
`;

/** Number of files next to the precious one; a removal that goes astray would hit some of them. */
const manyFiles = 50;

/** A directory outside the workspace whose files must stay unchanged. */
interface Precious {
  readonly place: string;
  /** Describes what is there. */
  readonly look: () => Promise<string>;
}

/** Creates it on the host on which the executor's own file calls would go astray: this one or a remote one. */
async function precious(kit: CaseContext, executor: CodeExecutor): Promise<Precious> {
  if (kit.capabilities.isolation !== "remote") {
    const place = await kit.directory();
    await writeFile(join(place, "precious"), "precious", { mode: 0o600 });
    for (let number = 0; number < manyFiles; number += 1) await writeFile(join(place, `more${number}`), "");
    const look = async (): Promise<string> => {
      const { mode, uid, gid } = await stat(join(place, "precious"));
      return [await readFile(join(place, "precious"), "utf8"), mode, uid, gid, await readdir(place)].join(" ");
    };
    return { place, look };
  }
  const place = await kit.outside(executor);
  const file = JSON.stringify(`${place}/precious`);
  const more = `for number in range(${manyFiles}): open(${JSON.stringify(place)} + "/more%d" % number, "w").close()`;
  await kit.succeed(executor, python(`open(${file}, "w").write("precious")\n${more}`));
  const look = python(
    `import os\ns = os.stat(${file})\nprint(open(${file}).read(), oct(s.st_mode), s.st_uid, s.st_gid, sorted(os.listdir(os.path.dirname(${file}))))`,
  );
  return { place, look: async () => (await kit.succeed(executor, look)).output };
}

/** Reads the first bytes of a file through a stream. */
async function contentOf(executor: CodeExecutor, file: string): Promise<Uint8Array> {
  const reader = executor.files.readStream(file).getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return value ?? new Uint8Array();
}

const stays: ConformanceCase = {
  name: "the host's file calls stay in the workspace while code swaps directories and links",
  needs: [language("python"), startsProcesses],
  async run(kit) {
    const executor = await kit.create();
    const { place, look } = await precious(kit, executor);
    const before = await look();
    await kit.succeed(
      executor,
      python(`import os\nos.makedirs("tree/swapped")\nos.symlink(${JSON.stringify(place)}, "link")`),
    );
    await kit.succeed(executor, inBackground(exchange(place)));
    for (let round = 0; round < 12; round += 1) {
      await settles(kit, "files.write", executor.files.write("tree/swapped/own", "own"));
      const read = await settles(kit, "files.read", executor.files.read("tree/swapped/precious"));
      assert.equal(read, undefined, "files.read() followed a link out of the workspace");
      const streamed = settles(kit, "files.readStream", contentOf(executor, "tree/swapped/precious"));
      assert.equal(await streamed, undefined, "files.readStream() followed a link out of the workspace");
      const stats = await settles(kit, "files.stat", executor.files.stat("tree/swapped/precious"));
      assert.equal(stats, undefined, "files.stat() followed a link out of the workspace");
      const writer = executor.files.writeStream("tree/swapped/streamed").getWriter();
      writer.closed.catch(() => {});
      await settles(kit, "files.writeStream", writer.write(Buffer.from("not precious")));
      await settles(kit, "abort() of files.writeStream", writer.abort());
      await settles(kit, "files.list", executor.files.list());
      await settles(kit, "files.makeDirectory", executor.files.makeDirectory("tree/swapped/made"));
      await settles(kit, "files.move", executor.files.move("tree/swapped/own", "tree/swapped/precious"));
      await settles(kit, "files.move", executor.files.move("tree/swapped/precious", "taken"));
      const taken = await settles(kit, "files.read", executor.files.read("taken"));
      const isOwn = taken === undefined || Buffer.from(taken).toString() !== "precious";
      assert.ok(isOwn, "files.move() moved a file from outside into the workspace");
      const entries = await settles(kit, "files.list", executor.files.list(undefined, { directories: true }));
      assert.ok(
        entries?.some(({ path }) => path.endsWith("more7")) !== true,
        "files.list() followed a link out of the workspace",
      );
      await settles(kit, "files.remove", executor.files.remove("tree"));
      for (let again = 0; again < 4; again += 1) {
        await settles(kit, "files.write", executor.files.write("tree/swapped/more", "more"));
        await settles(kit, "files.remove", executor.files.remove("tree"));
      }
      await settles(kit, "files.write", executor.files.write("tree/swapped/more", "more"));
    }
    assert.equal(await look(), before, "files outside the workspace do not change");
  },
};

/** Puts another file in place of each incomplete one that appears, for a minute. */
const replaceParts = `
import os, time
end = time.time() + 60
open("ready", "w").close()
while time.time() < end:
    for name in os.listdir("."):
        if "part" not in name or os.path.getsize(name) == 5: continue
        with open("decoy", "w") as file: file.write("decoy")
        os.rename("decoy", name)
`;

const keepsWrites: ConformanceCase = {
  name: "a write that succeeds has stored what was written, even if code replaces the incomplete file",
  needs: [language("python"), startsProcesses],
  async run(kit) {
    const executor = await kit.create();
    await kit.succeed(executor, inBackground(replaceParts));
    const content = Buffer.alloc(5 * 1_048_576, "written ");
    for (let round = 0; round < 3; round += 1) {
      const failure = await kit.within(
        "files.write",
        executor.files.write(`${round}`, content).then(
          () => undefined,
          (error: unknown) => error,
        ),
      );
      if (failure === undefined) {
        assert.ok(content.equals(await executor.files.read(`${round}`)), "files.write() lost what was written");
      } else {
        assert.ok(FencedError.isInstance(failure), "files.write() must reject with a FencedError");
      }
    }
  },
};

const keepsResult: ConformanceCase = {
  name: "a block that replaces its own program with a directory keeps its result",
  needs: [language("python"), processes],
  async run(kit) {
    const executor = await kit.create();
    const code = `import os, sys\nfile = os.path.abspath(sys.argv[0])\nos.remove(file)\nos.makedirs(file + "/deep")\nprint("done")`;
    const result = await kit.run(executor, python(code));
    assert.equal(result.exitCode, 0, result.output);
    assert.equal(result.output, "done\n");
    await kit.succeedWith(executor, kit.language.print("next"));
    assert.deepEqual(await executor.files.list(), []);
  },
};

const survivesPipes: ConformanceCase = {
  name: "named pipes in place of all files, including the executor's own, make nothing hang",
  needs: [language("python"), specialFiles],
  async run(kit) {
    const executor = await kit.create();
    await executor.files.write("given.txt", "given");
    const result = await kit.run(executor, python(pipesEverywhere));
    assert.equal(result.output, "done\n");
    await kit.rejects(InvalidInputError, "files.read", executor.files.read("given.txt"));
    await kit.rejects(InvalidInputError, "files.write", executor.files.write("given.txt", "x"));
    assert.deepEqual(await kit.within("files.list", executor.files.list()), []);
    const next = await kit.run(executor, python("print('next')"));
    assert.equal(next.output, "next\n");
    await kit.within("files.remove", executor.files.remove("given.txt"));
    await kit.within("stop()", executor.stop());
  },
};

const survivesReplacing: ConformanceCase = {
  name: "a program that replaces the executor's own files with pipes, links and directories harms nothing outside",
  needs: [language("python"), processes],
  async run(kit) {
    const executor = await kit.create();
    const { place, look } = await precious(kit, executor);
    const before = await look();
    await kit.succeed(executor, inBackground(replaceOwnFiles(place)));
    // The code that replaced the files determines the results, but each call must end.
    for (let round = 0; round < 4; round += 1) {
      await settles(kit, "executeCodeBlocks", executor.executeCodeBlocks([python("print(1)")], { timeoutMs: 1500 }));
      await settles(kit, "files.list", executor.files.list());
    }
    await kit.within("restart()", executor.restart());
    assert.equal(await look(), before);
    await kit.within("stop()", executor.stop());
  },
};

const special: ConformanceCase = {
  name: "sockets, pipes and links to devices are neither listed nor read",
  needs: [language("python"), specialFiles],
  async run(kit) {
    const executor = await kit.create();
    const code = `import os, socket\nos.mkfifo("pipe")\ns = socket.socket(socket.AF_UNIX)\ns.bind("socket")\ns.close()\nos.symlink("/dev/zero", "zero")`;
    await kit.succeed(executor, python(code));
    assert.deepEqual(await kit.within("files.list", executor.files.list()), []);
    for (const name of ["pipe", "socket", "zero"]) {
      const read = await settles(kit, `files.read of a ${name}`, executor.files.read(name));
      assert.equal(read, undefined, `files.read("${name}") must fail`);
      const streamed = await settles(kit, `files.readStream of a ${name}`, contentOf(executor, name));
      assert.equal(streamed, undefined, `files.readStream("${name}") must fail`);
      const stats = await settles(kit, `files.stat of a ${name}`, executor.files.stat(name));
      assert.equal(stats, undefined, `files.stat("${name}") must fail`);
      await settles(kit, `files.write to a ${name}`, executor.files.write(name, "x"));
      await settles(kit, `files.remove of a ${name}`, executor.files.remove(name));
    }
  },
};

const sparse: ConformanceCase = {
  name: "read() rejects a sparse file of 100 GB, which readStream() can read",
  needs: [language("python")],
  async run(kit) {
    const executor = await kit.create();
    const made = await kit.run(
      executor,
      python(`import os\nopen("sparse", "w").close()\nos.truncate("sparse", 10**11)\nprint("made")`),
    );
    // If the file system or a limit refuses such a file, there is nothing to read.
    if (made.exitCode !== 0) return;
    await kit.rejects(InvalidInputError, "files.read", executor.files.read("sparse"), /readStream/);
    assert.equal((await executor.files.stat("sparse")).size, 10 ** 11);
    const reader = executor.files.readStream("sparse").getReader();
    assert.equal((await kit.within("the first bytes", reader.read())).value?.[0], 0);
    await kit.within("leaving the stream", reader.cancel());
    await kit.within("files.remove", executor.files.remove("sparse"));
    await kit.rejects(FileNotFoundError, "files.read", executor.files.read("sparse"));
  },
};

/** The host's own file calls on files that code changes meanwhile or created to do harm. */
export const hostileFiles: ConformanceGroup = {
  name: "hostile files",
  cases: [stays, keepsWrites, keepsResult, survivesPipes, survivesReplacing, special, sparse],
};
