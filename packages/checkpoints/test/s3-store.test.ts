import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DeleteObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { BackendUnavailableError, CheckpointError } from "@fenced/core";
import S3rver from "s3rver";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { changesBetween, s3Store } from "../src/index.ts";
import { localExecutor } from "./support/local-executor.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const bucket = "fenced";
let server: S3rver;
let client: S3Client;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "fenced-s3-"));
  server = new S3rver({ port: 0, address: "127.0.0.1", silent: true, directory, configureBuckets: [{ name: bucket }] });
  const { port } = await server.run();
  client = clientAt(port);
});

afterAll(async () => {
  client.destroy();
  await server.close();
  await rm(directory, { recursive: true, force: true });
});

/** Repeats a request like any client of S3: this server answers 500 if two deletions empty the same folder at once. */
function clientAt(port: number): S3Client {
  return new S3Client({
    region: "us-east-1",
    endpoint: `http://127.0.0.1:${port}`,
    forcePathStyle: true,
    credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
  });
}

describe("s3Store", () => {
  it("keeps checkpoints, finds what changed, and frees what was deleted", async () => {
    const store = s3Store({ client, bucket, prefix: "kept/" });
    const workDir = await temporaryDirectory();
    await mkdir(join(workDir, "d"));
    await writeFile(join(workDir, "d/large"), Buffer.alloc(2_500_000, "abc"));
    await writeFile(join(workDir, "small"), "1");
    const executor = localExecutor({ workDir });
    const first = await executor.checkpoint({ store });
    await writeFile(join(workDir, "small"), "2");
    const second = await executor.checkpoint({ store });
    expect(second.newBytes).toBeLessThan(2000);
    expect(await changesBetween({ store, id: first.id }, { store, id: second.id })).toEqual({
      created: [],
      changed: ["small"],
      deleted: [],
    });
    const later = localExecutor({ restore: { store, id: second.id } });
    expect(Buffer.from(await later.files.read("small")).toString()).toBe("2");
    expect((await later.files.read("d/large")).length).toBe(2_500_000);
    expect((await store.list()).map(({ id }) => id)).toEqual([first.id, second.id]);
    await store.delete(first.id);
    // The first content of `small`, and the list of files that had it.
    expect(await store.sweep()).toMatchObject({ removed: 2, waiting: 0 });
    const again = localExecutor({ restore: { store, id: second.id } });
    expect(Buffer.from(await again.files.read("small")).toString()).toBe("2");
  });

  it("shares a bucket with others, and says what is damaged", async () => {
    const store = s3Store({ client, bucket, prefix: "damaged/" });
    const executor = localExecutor();
    await executor.files.write("a", "content");
    const { id } = await executor.checkpoint({ store });
    expect(await s3Store({ client, bucket, prefix: "others/" }).list()).toEqual([]);
    const Key = `damaged/checkpoints/${id}`;
    await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: "{}" }));
    await expect(localExecutor({ restore: { store, id } }).start()).rejects.toThrow(/is damaged/);
    await client.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
    await expect(localExecutor({ restore: { store, id } }).start()).rejects.toThrow(CheckpointError);
  });

  it("says which bucket cannot be used", async () => {
    const missing = s3Store({ client, bucket: "missing" });
    await expect(localExecutor().checkpoint({ store: missing })).rejects.toThrow(BackendUnavailableError);
    await expect(missing.list()).rejects.toThrow(/the bucket missing/);
    const silent = clientAt(1);
    const unreachable = s3Store({ client: silent, bucket });
    await expect(unreachable.open("0".repeat(64))).rejects.toThrow(/ECONNREFUSED/);
    silent.destroy();
  });

  it("names wrong options", () => {
    expect(() => s3Store({ client: {}, bucket })).toThrow(/needs an S3Client/);
    expect(() => s3Store({ client, bucket: "" })).toThrow(/the name of a bucket/);
  });
});
