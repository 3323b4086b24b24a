import { needs } from "@fenced/test-support";
import { createSecrets, defineSandbox, defineWorkspace, InMemorySandboxStore, spawnNdjson } from "@tanstack/ai-sandbox";
import { describe, expect, it, onTestFinished } from "vitest";
import { fencedProvider, type FencedProvider } from "../src/tanstack/index.ts";
import { inPlace, places } from "./support/places.ts";

function providerIn(place: string): FencedProvider {
  const provider = fencedProvider(inPlace(place));
  onTestFinished(() => provider[Symbol.asyncDispose]());
  return provider;
}

describe.each(places)("TanStack's sandbox in $place", ({ place, backends }) => {
  describe("with all that it needs", needs(...backends), () => {
    it("is set up, found again by its thread, and ended", async () => {
      const provider = providerIn(place);
      const workspace = defineWorkspace({
        source: { type: "none" },
        instructions: "Be kind.",
        secrets: createSecrets({ TOKEN: "t" }),
        setup: ["mkdir made", "cd made", "pwd > where; echo $TOKEN > token"],
      });
      const sandbox = defineSandbox({ id: "coder", provider, workspace });
      const context = { threadId: "t", runId: "r", store: new InMemorySandboxStore() };
      const first = await sandbox.ensure(context);
      expect(await first.fs.read("/workspace/AGENTS.md")).toContain("Be kind.");
      expect(await first.fs.read("/workspace/made/where")).toBe(`${first.workspaceRoot}/made\n`);
      expect(await first.fs.read("made/token")).toBe("t\n");
      await first.fs.write("/workspace/note.txt", "kept");
      const again = await sandbox.ensure({ ...context, runId: "r2" });
      expect([again.id, await again.fs.read("note.txt")]).toEqual([first.id, "kept"]);
      await sandbox.destroy(context);
      await expect(again.process.exec("true")).rejects.toThrow(/stopped/);
    });

    it("runs commands and programs, with variables, input, signals and aborts", async () => {
      const handle = await providerIn(place).create({ env: { GIVEN: "1" } });
      await handle.env.set({ SET: "2" });
      const told = await handle.process.exec('echo "$GIVEN$SET$OWN"; pwd; echo bad >&2; exit 3', {
        env: { OWN: "3" },
        cwd: "/workspace",
      });
      expect(told).toEqual({ stdout: `123\n${handle.workspaceRoot}\n`, stderr: "bad\n", exitCode: 3 });
      const cat = await handle.process.spawn("cat; sleep 600 & echo $!; wait");
      await cat.stdin.write("grüße\n");
      await cat.stdin.end();
      let said = "";
      for await (const piece of cat.stdout) {
        said += piece;
        if (/\d\n$/.test(said)) break;
      }
      expect(said).toMatch(/^grüße\n\d+\n$/);
      await cat.kill("SIGKILL");
      expect(await cat.wait()).toBe(137);
      expect((await handle.process.exec(`kill -0 ${said.split("\n")[1]}`)).exitCode).toBe(1);
      const lines = [];
      for await (const line of spawnNdjson(handle, "head -1", { input: '{"a":1}\n{"b":2}\n' })) lines.push(line);
      expect(lines).toEqual([{ a: 1 }]);
      await expect(handle.process.exec("sleep 600", { signal: AbortSignal.timeout(300) })).rejects.toThrow(/aborted/);
    });

    it("keeps the beginning and the end of an endless output, within memory", async () => {
      const handle = await providerIn(place).create({});
      const { stdout } = await handle.process.exec("yes | head -c 50000000; echo end");
      expect(stdout.length).toBeLessThan(1_100_000);
      expect(stdout).toMatch(/^y\n[^]*\[\.\.\. \d+ bytes left out \.\.\.\]\n[^]*end\n$/);
    });

    it("reads, writes, lists, moves, removes and watches files, of the workspace only", async () => {
      const { fs, process } = await providerIn(place).create({});
      await fs.mkdir("/workspace/a/b");
      await fs.write("/workspace/a/c.txt", "text");
      await fs.write("a/d.bin", new Uint8Array([0, 255]));
      expect(await fs.list("/workspace/a")).toEqual([
        { name: "b", path: "/workspace/a/b", type: "dir" },
        { name: "c.txt", path: "/workspace/a/c.txt", type: "file" },
        { name: "d.bin", path: "/workspace/a/d.bin", type: "file" },
      ]);
      expect(await fs.readBytes("a/d.bin")).toEqual(new Uint8Array([0, 255]));
      await fs.rename("a/c.txt", "/workspace/e.txt");
      expect([await fs.exists("a/c.txt"), await fs.exists("e.txt")]).toEqual([false, true]);
      await fs.remove("a");
      await fs.remove("a");
      expect(await fs.exists("/workspace/a")).toBe(false);
      await process.exec("ln -s /etc/passwd link");
      for (const path of ["/etc/passwd", "../x", "/workspace/../x", "link"]) {
        await expect(fs.read(path)).rejects.toThrow(/workspace/);
      }
      const seen: string[] = [];
      const watching = await fs.watch?.("/workspace", ({ path }) => seen.push(path));
      await process.exec("mkdir -p w && echo x > w/x.txt");
      await expect.poll(() => seen).toContain("/workspace/w/x.txt");
      await watching?.stop();
    });

    it("leads to ports, without a network", async () => {
      const handle = await providerIn(place).create({});
      const server = await handle.process.spawn("echo served > index.html; python3 -m http.server 8000");
      const { url } = await handle.ports.connect(8000);
      await expect.poll(() => fetch(`${url}/index.html`).then((each) => each.text(), String)).toBe("served\n");
      await server.kill("SIGKILL");
    });

    it("has snapshots and forks", async () => {
      const provider = providerIn(place);
      const handle = await provider.create({ env: { GIVEN: "1" } });
      await handle.fs.write("a.txt", "1");
      const snapshot = await handle.snapshot?.("first");
      const fork = await handle.fork?.();
      await handle.fs.write("a.txt", "2");
      const restored = await provider.restoreSnapshot?.({ snapshotId: snapshot?.id ?? "" });
      expect([await fork?.fs.read("a.txt"), await restored?.fs.read("a.txt"), snapshot?.label]).toEqual([
        "1",
        "1",
        "first",
      ]);
      expect(await fork?.process.exec("echo $GIVEN")).toMatchObject({ stdout: "1\n" });
      expect(new Set([handle.id, fork?.id, restored?.id]).size).toBe(3);
    });
  });
});
