import type * as S3 from "@aws-sdk/client-s3";
import { BackendUnavailableError } from "@fenced/core";
import type { ObjectStorage, StoredObject } from "../store/object-storage.ts";

/** Whether something can be an `S3Client`, possibly of another installed copy. */
export function isS3Client(value: unknown): value is S3.S3Client {
  return typeof value === "object" && value !== null && typeof Reflect.get(value, "send") === "function";
}

/** Where an `S3Storage` keeps its objects. */
export interface S3Place {
  readonly client: S3.S3Client;
  readonly bucket: string;
  readonly prefix: string;
}

/** Objects of a bucket. S3 shows what was written to every reader at once, and puts whole objects or none. */
export class S3Storage implements ObjectStorage {
  readonly name: string;
  readonly #place: S3Place;
  #module: Promise<typeof S3> | undefined;

  constructor(place: S3Place) {
    this.#place = place;
    this.name = `the bucket ${place.bucket}`;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const { PutObjectCommand } = await this.#commands();
    await this.#guard(`${key} could not be written`, () =>
      this.#place.client.send(new PutObjectCommand({ ...this.#object(key), Body: bytes, ContentLength: bytes.length })),
    );
  }

  async get(key: string, maxBytes: number): Promise<Uint8Array | "larger" | undefined> {
    const { GetObjectCommand } = await this.#commands();
    return this.#guard(`${key} could not be read`, () =>
      unlessMissing(async () => {
        const { Body, ContentLength = 0 } = await this.#place.client.send(new GetObjectCommand(this.#object(key)));
        if (ContentLength <= maxBytes) return (await Body?.transformToByteArray()) ?? new Uint8Array(0);
        // Do not wait for the rest.
        await Body?.transformToWebStream().cancel();
        return "larger";
      }),
    );
  }

  async size(key: string): Promise<number | undefined> {
    const { HeadObjectCommand } = await this.#commands();
    return this.#guard(`${key} could not be looked at`, () =>
      unlessMissing(
        async () => (await this.#place.client.send(new HeadObjectCommand(this.#object(key)))).ContentLength ?? 0,
      ),
    );
  }

  async *list(folder: string): AsyncGenerator<StoredObject, void, void> {
    const { ListObjectsV2Command } = await this.#commands();
    const { client, bucket, prefix } = this.#place;
    let token: string | undefined;
    do {
      const request = { Bucket: bucket, Prefix: `${prefix}${folder}`, ContinuationToken: token };
      const page = await this.#guard(`${folder} could not be listed`, () =>
        client.send(new ListObjectsV2Command(request)),
      );
      for (const { Key = "", Size = 0, LastModified } of page.Contents ?? []) {
        yield { key: Key.slice(prefix.length), size: Size, modifiedAt: LastModified?.getTime() ?? 0 };
      }
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  async delete(key: string): Promise<void> {
    const { DeleteObjectCommand } = await this.#commands();
    await this.#guard(`${key} could not be deleted`, () =>
      unlessMissing(() => this.#place.client.send(new DeleteObjectCommand(this.#object(key)))),
    );
  }

  #object(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#place.bucket, Key: `${this.#place.prefix}${key}` };
  }

  /** Loaded when it is first used: only this store needs the package. */
  #commands(): Promise<typeof S3> {
    this.#module ??= import("@aws-sdk/client-s3");
    return this.#module;
  }

  async #guard<T>(problem: string, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (cause) {
      throw new BackendUnavailableError(`Checkpoints in ${this.name}: ${problem} (${String(cause)})`, {
        remedy:
          "Check that the bucket exists, and that the client's credentials may put, get, list and delete objects in it.",
        cause,
      });
    }
  }
}

async function unlessMissing<T>(action: () => Promise<T>): Promise<T | undefined> {
  try {
    return await action();
  } catch (error) {
    if (statusOf(error) !== 404 || nameOf(error) === "NoSuchBucket") throw error;
    return undefined;
  }
}

function statusOf(error: unknown): unknown {
  const metadata: unknown = typeof error === "object" && error !== null ? Reflect.get(error, "$metadata") : undefined;
  return typeof metadata === "object" && metadata !== null ? Reflect.get(metadata, "httpStatusCode") : undefined;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "";
}
