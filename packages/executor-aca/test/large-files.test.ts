import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, open, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { InvalidInputError } from "@fenced/core";
import { MemoryWatch } from "@fenced/executor-testkit";
import { needs, nightly } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ACADynamicSessionsCodeExecutor, staticToken } from "../src/index.ts";
import { startEmulatorProcess } from "./emulator-process.ts";

const mebibyte = 1024 * 1024;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "fenced-aca-test-"));
});

afterAll(async () => {
  await rm(directory, { recursive: true });
});

describe("a large file", needs("python3"), () => {
  // The conformance suite has a smaller one.
  it("of 100 MB is uploaded and downloaded with bounded memory", { timeout: 300_000, ...nightly }, async () => {
    await using emulator = await startEmulatorProcess();
    await using executor = new ACADynamicSessionsCodeExecutor({
      poolManagementEndpoint: emulator.endpoint,
      credential: staticToken(emulator.token),
    });
    await executor.start();
    const local = join(directory, "large.bin");
    await writeLarge(local, 100);
    using memory = new MemoryWatch();
    await executor.uploadFiles([local]);
    const [copy = ""] = await executor.downloadFiles(["large.bin"], join(directory, "copies"));
    const held = memory.peak() / mebibyte;
    expect((await stat(copy)).size).toBe(100 * mebibyte);
    expect(await digest(copy)).toBe(await digest(local));
    expect(held).toBeLessThan(32);
  });

  it("of more than 128 MiB is rejected, and leaves nothing in the session", async () => {
    await using emulator = await startEmulatorProcess();
    await using executor = new ACADynamicSessionsCodeExecutor({
      poolManagementEndpoint: emulator.endpoint,
      credential: staticToken(emulator.token),
    });
    const local = join(directory, "too-large.bin");
    await writeLarge(local, 1);
    await truncate(local, 128 * mebibyte + 1);
    const upload = executor.uploadFiles([local]);
    await expect(upload).rejects.toSatisfy(
      (error) => InvalidInputError.isInstance(error) && /128 MiB/.test(error.message),
    );
    expect(await emulator.sessions()).toHaveLength(1);
    expect(await executor.getFileList()).toEqual([]);
  });
});

async function writeLarge(path: string, mebibytes: number): Promise<void> {
  const file = await open(path, "w");
  for (let part = 0; part < mebibytes; part += 1) await file.write(Buffer.alloc(mebibyte, `part ${part} `));
  await file.close();
}

async function digest(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}
