import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { fencedCompute, type FencedCompute } from "../src/computesdk/index.ts";
import type { SandboxRequest } from "../src/index.ts";
import { inPlace, places } from "./support/places.ts";

function computeIn(place: string): FencedCompute & { readonly asked: SandboxRequest[] } {
  const asked: SandboxRequest[] = [];
  const { createExecutor, ...options } = inPlace(place);
  const provider = fencedCompute({
    ...options,
    createExecutor: (request) => {
      asked.push(request);
      return createExecutor(request);
    },
  });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  return Object.assign(provider, { asked });
}

describe.each(places)("ComputeSDK's sandbox in $place", ({ place, backends }) => {
  describe("with all that it needs", needs(...backends), () => {
    it("is created with what was asked for, found, listed and destroyed", async () => {
      const provider = computeIn(place);
      const sandbox = await provider.sandbox.create({ envs: { GIVEN: "1" }, image: "python", timeout: 86_400_000 });
      expect(provider.asked).toMatchObject([{ id: sandbox.sandboxId, given: { image: "python" } }]);
      expect(await sandbox.getInfo()).toMatchObject({ provider: "fenced", status: "running", timeout: 86_400_000 });
      expect((await provider.sandbox.getById(sandbox.sandboxId))?.sandboxId).toBe(sandbox.sandboxId);
      expect((await provider.sandbox.list()).map(({ sandboxId }) => sandboxId)).toEqual([sandbox.sandboxId]);
      await sandbox.destroy();
      expect(await provider.sandbox.getById(sandbox.sandboxId)).toBeNull();
      const short = await provider.sandbox.create({ timeout: 1 });
      await expect.poll(() => provider.sandbox.getById(short.sandboxId)).toBeNull();
    });

    it("runs commands, also in the background, with a time limit, and with output as it comes", async () => {
      const sandbox = await computeIn(place).sandbox.create({ envs: { GIVEN: "1" } });
      const told = await sandbox.runCommand('echo "$GIVEN$OWN"; echo bad >&2; exit 3', { env: { OWN: "2" } });
      expect(told).toMatchObject({ stdout: "12\n", stderr: "bad\n", exitCode: 3 });
      expect(await sandbox.runCommand("echo begun; sleep 600", { timeout: 1000 })).toMatchObject({
        stdout: "begun\n",
        exitCode: 124,
      });
      expect(await sandbox.runCommand("yes; echo", { background: true })).toMatchObject({ exitCode: 0, stdout: "" });
      await sandbox.runCommand("sleep 1; echo done > done.txt", { background: true });
      await expect.poll(() => sandbox.filesystem.exists("done.txt"), { timeout: 60_000 }).toBe(true);
      const heard = { stdout: "", stderr: "" };
      const streamed = await sandbox.runCommand("printf 'grü\\303'; echo bad >&2; sleep 0.2; printf '\\237e'", {
        onStdout: (piece) => void (heard.stdout += piece),
        onStderr: (piece) => void (heard.stderr += piece),
      });
      expect(heard).toEqual({ stdout: "grüße", stderr: "bad\n" });
      expect(streamed).toMatchObject(heard);
    });

    it("has files, ports and snapshots", async () => {
      const provider = computeIn(place);
      const sandbox = await provider.sandbox.create();
      await sandbox.filesystem.mkdir("/workspace/a");
      await sandbox.filesystem.writeFile("/workspace/a/b.txt", "text");
      expect(await sandbox.filesystem.readFile("a/b.txt")).toBe("text");
      expect(await sandbox.filesystem.readdir("/workspace")).toMatchObject([{ name: "a", type: "directory" }]);
      const snapshot = await provider.snapshot?.create(sandbox.sandboxId);
      await sandbox.filesystem.remove("a");
      expect(await sandbox.filesystem.exists("a")).toBe(false);
      const restored = await provider.sandbox.create({ snapshotId: snapshot?.id ?? "" });
      expect(await restored.filesystem.readFile("a/b.txt")).toBe("text");
      expect((await provider.snapshot?.list())?.map(({ id }) => id)).toEqual([snapshot?.id]);
      await provider.snapshot?.delete(snapshot?.id ?? "");
      expect(await provider.snapshot?.list()).toEqual([]);
      expect(await sandbox.getUrl({ port: 3000, protocol: "ws" })).toMatch(/^ws:\/\/127\.0\.0\.1:\d+$/);
    });
  });
});
