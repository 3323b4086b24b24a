import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, open, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import vm from "node:vm";
import { Worker } from "node:worker_threads";
import { needs, slow } from "@fenced/test-support";
import { bundlers, esbuildBanner } from "@fenced/test-support/bundle-program";
import { isAlive } from "@fenced/test-support/is-alive";
import { makeSingleExecutable } from "@fenced/test-support/single-executable";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";

const run = promisify(execFile);
const program = path.join(import.meta.dirname, "fixtures", "bundled-program.ts");
/** Where the packages are found that cannot be part of a bundle. */
const cwd = path.join(import.meta.dirname, "..");

const names = ["Rolldown", "esbuild"] as const;

describe("bundles", slow, () => {
  let directory: string;
  /** The names of the packages in each bundle. */
  let contents: string[][];

  const modulesOf = (bundler: string): string => path.join(directory, `${bundler}.mjs`);
  const commonJsOf = (bundler: string): string => path.join(directory, `${bundler}.cjs`);

  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), "fenced-bundles-"));
    const made = names.flatMap((name) => [
      bundlers[name](program, modulesOf(name), "esm"),
      bundlers[name](program, commonJsOf(name), "cjs"),
    ]);
    contents = await Promise.all(made);
  }, 120_000);

  afterAll(() => rm(directory, { recursive: true }));

  async function workDirectory(): Promise<string> {
    const made = path.join(directory, `work-${Math.random()}`);
    await mkdir(made);
    return made;
  }

  /** What the program prints, line by line. */
  async function answers(command: readonly [string, ...string[]], ...words: readonly string[]): Promise<string[]> {
    const [file, ...first] = command;
    const { stdout } = await run(file, [...first, ...words, await workDirectory()], { cwd });
    return stdout.trim().split("\n");
  }

  const withNode = (bundle: string): [string, ...string[]] => [process.execPath, "--no-warnings", bundle];

  /** What `run` says of blocks in these languages. */
  const well = (languages: string): string =>
    JSON.stringify({ output: languages.split(",").map(() => "42"), exitCode: 0, files: [], left: [] });

  it("contain no client of Docker, whose native modules bundlers cannot handle", () => {
    expect(contents).toHaveLength(4);
    for (const packages of contents) {
      expect(packages).toContain("zod");
      expect(packages).not.toContain("dockerode");
      expect(packages).not.toContain("ssh2");
    }
  });

  it("of esbuild need the banner that the documentation gives", async () => {
    expect(await readFile(path.join(cwd, "../../docs/bundlers.md"), "utf8")).toContain(`'${esbuildBanner}'`);
  });

  describe.each(names)("of %s", (bundler) => {
    describe.each([
      ["ES modules", () => modulesOf(bundler)],
      ["CommonJS", () => commonJsOf(bundler)],
    ])("as %s", (_, bundle) => {
      it.each([
        ["local", "typescript"],
        ["wasm", "javascript,python"],
      ])("run blocks in the executor %s, in %s, and name a component's missing package", async (kind, languages) => {
        const [said, missing] = await answers(withNode(bundle()), kind, languages);
        expect(said).toBe(well(languages));
        expect(missing).toContain("The package @fenced/not-there is not installed");
      });

      it("run blocks in Docker, with the client that is installed", needs("docker"), async () => {
        const [said] = await answers(withNode(bundle()), "docker", "python");
        expect(said).toBe(well("python"));
      });
    });
  });

  // Elsewhere, applications must be signed.
  describe.skipIf(process.platform !== "linux")("that are a single executable application", () => {
    let application: string;

    beforeAll(async () => {
      const place = path.join(directory, "application");
      await mkdir(place);
      application = path.join(place, "program");
      await makeSingleExecutable(commonJsOf("esbuild"), application);
      // Beside it, as the documentation says.
      await symlink(path.join(cwd, "node_modules"), path.join(place, "node_modules"));
    }, 120_000);

    const starts = (): Promise<string> => readFile(`${application}.starts`, "utf8");
    afterEach(() => rm(`${application}.starts`, { force: true }));

    it.each([
      ["local", "javascript,typescript"],
      ["wasm", "javascript,python"],
    ])("run blocks in the executor %s, in %s", async (kind, languages) => {
      const [said] = await answers([application], kind, languages);
      expect(said).toBe(well(languages));
      // Nothing has taken it for Node.
      expect(await starts()).toBe(`${kind}\n`);
    });

    it("run blocks in the OS sandbox", needs("bubblewrap", "python3"), async () => {
      const [said] = await answers([application], "sandbox", "javascript,python");
      expect(said).toBe(well("javascript,python"));
      expect(await starts()).toBe("sandbox\n");
    });

    it("run blocks in Docker", needs("docker"), async () => {
      const [said] = await answers([application], "docker", "python");
      expect(said).toBe(well("python"));
      expect(await starts()).toBe("docker\n");
    });

    /** Kills the program while it has a session; returns the commands of the processes that it had started, once they have ended. */
    async function kill(kind: string): Promise<string[][]> {
      const child = spawn(application, [kind, "hold", await workDirectory()], {
        cwd,
        stdio: ["ignore", "pipe", "ignore"],
      });
      await once(child.stdout, "data");
      const started = await childrenOf(child.pid);
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      await vi.waitFor(() => expect(started.filter(({ pid }) => isAlive(pid))).toEqual([]), 60_000);
      return started.map(({ command }) => command);
    }

    it("are not started again by what cleans up after kill -9", async () => {
      const [leash = []] = await kill("local");
      expect(leash).toContain("fenced-leash");
      expect(await starts()).toBe("local\n");
    });

    it("are not started again by what ends their containers after kill -9", needs("docker"), async () => {
      const leash = (await kill("docker")).find((command) => command.includes("fenced-container-leash"));
      expect(leash).toBeDefined();
      expect(leash).not.toContain(application);
      expect(await starts()).toBe("docker\n");
    });
  });

  describe.skipIf(process.platform === "win32")("in Electron", () => {
    let electron: string;
    let preload: string;

    // Stands in for Electron, which npm's registry does not have: a program that opens a window unless it is told to be Node.
    beforeAll(async () => {
      electron = path.join(directory, "electron");
      preload = path.join(directory, "electron.cjs");
      const script = `#!/bin/sh
if [ "$ELECTRON_RUN_AS_NODE" != 1 ]; then echo "$@" >> "$0.windows"; exit 1; fi
echo "$@" >> "$0.nodes"
exec '${process.execPath}' "$@"
`;
      await writeFile(electron, script, { mode: 0o755 });
      const main = `
        Object.defineProperty(process.versions, "electron", { value: "39.0.0" });
        process.execPath = ${JSON.stringify(electron)};
      `;
      await writeFile(preload, main);
    });

    afterEach(() => Promise.all(["windows", "nodes"].map((name) => rm(`${electron}.${name}`, { force: true }))));

    const main = (): [string, ...string[]] => [...withNode("--require"), preload, commonJsOf("esbuild")];
    const wasNode = (): boolean => existsSync(`${electron}.nodes`);
    const openedWindow = (): boolean => existsSync(`${electron}.windows`);

    it("open no other window for WebAssembly's interpreters", async () => {
      const [said] = await answers(main(), "wasm", "javascript,python");
      expect(said).toBe(well("javascript,python"));
      expect([wasNode(), openedWindow()]).toEqual([true, false]);
    });

    it("open no other window for what ends their containers after kill -9", needs("docker"), async () => {
      const [file, ...words] = main();
      const child = spawn(file, [...words, "docker", "hold", await workDirectory()], {
        cwd,
        stdio: ["ignore", "pipe", "ignore"],
      });
      await once(child.stdout, "data");
      const started = await childrenOf(child.pid);
      child.kill("SIGKILL");
      await vi.waitFor(() => expect(started.filter(({ pid }) => isAlive(pid))).toEqual([]), 60_000);
      expect([wasNode(), openedWindow()]).toEqual([true, false]);
    });
  });

  it("says which package is missing where a bundle runs alone", async () => {
    // pnpm sets it for what it runs, and Node would find the workspace's packages there.
    const { NODE_PATH: _, ...env } = process.env;
    const alone = run(process.execPath, ["--no-warnings", commonJsOf("Rolldown"), "wasm", "javascript", directory], {
      cwd: directory,
      env,
    });
    await expect(alone).rejects.toThrow(/was not found\. Run `npm install @fenced\/executor-wasm`/);
  });

  it("run in a context of node:vm, as in Jest and in Vitest's vm pools", async () => {
    const module: { exports: Record<string, unknown> } = { exports: {} };
    const context = vm.createContext();
    // What Node adds to JavaScript's own globals is the same in both; Symbol, Error and Promise are not.
    for (const name of Object.getOwnPropertyNames(globalThis)) {
      const own = vm.runInContext(`${JSON.stringify(name)} in globalThis`, context) === true;
      if (!own && name !== "global") Reflect.set(context, name, Reflect.get(globalThis, name));
    }
    const commonJs = commonJsOf("Rolldown");
    const text = `(module, exports, require) => {${await readFile(commonJs, "utf8")}\n}`;
    const load: unknown = vm.runInContext(text, context, { filename: commonJs });
    if (typeof load !== "function") throw new Error("not a function");
    Reflect.apply(load, undefined, [module, module.exports, createRequire(path.join(cwd, "main.js"))]);
    const { symbols, run: start } = module.exports;
    expect(symbols).toBe("symbol,symbol");
    if (typeof start !== "function") throw new Error("not a function");
    expect(await Reflect.apply(start, undefined, ["local", "javascript", await workDirectory()])).toBe(
      well("javascript"),
    );
  });

  it("run in a worker thread, whose end closes no descriptor of the program", async () => {
    const text = `
      const { parentPort, workerData } = require("node:worker_threads");
      const { run } = require(workerData.bundle);
      parentPort.once("message", () => parentPort.close());
      run("local", "javascript", workerData.workDir).then((said) => parentPort.postMessage(said));
    `;
    const commonJs = commonJsOf("Rolldown");
    const workerData = { bundle: commonJs, workDir: await workDirectory() };
    const worker = new Worker(text, { eval: true, workerData });
    const [said]: unknown[] = await once(worker, "message");
    expect(said).toBe(well("javascript"));
    // They get the numbers that the worker has used and given back.
    const files = await Promise.all(Array.from({ length: 64 }, () => open(commonJs)));
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    worker.postMessage("end");
    await once(worker, "exit");
    const sizes = await Promise.allSettled(files.map(async (file) => (await file.stat()).size));
    await Promise.allSettled(files.map((file) => file.close()));
    expect(sizes.filter(({ status }) => status === "rejected")).toEqual([]);
  });
});

/** The processes that a process has started and not seen end. Linux only. */
async function childrenOf(parent: number | undefined): Promise<{ pid: number; command: string[] }[]> {
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  const found = await Promise.all(
    pids.map(async (pid) => {
      // Processes end meanwhile.
      const read = (name: string): Promise<string> => readFile(`/proc/${pid}/${name}`, "utf8").catch(() => "");
      const [status, command] = await Promise.all([read("status"), read("cmdline")]);
      return { pid, parent: Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]), command: command.split("\0") };
    }),
  );
  return found.filter((each) => each.parent === parent);
}
