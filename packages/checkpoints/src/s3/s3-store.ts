import { type CheckpointStore, InvalidInputError } from "@fenced/core";
import { ObjectStore } from "../store/object-store.ts";
import { isS3Client, S3Storage } from "./s3-storage.ts";

/** Options of `s3Store`. */
export interface S3StoreOptions {
  /** An `S3Client` of `@aws-sdk/client-s3`, which you configure, and close when you no longer need it. */
  readonly client: object;
  /** The bucket, which must exist. */
  readonly bucket: string;
  /** What the keys of all objects begin with: `checkpoints/`. Default: nothing. */
  readonly prefix?: string | undefined;
}

/**
 * Keeps checkpoints in a bucket of S3, or of a service that speaks its protocol. Needs `@aws-sdk/client-s3`, and permission to
 * put, get, list and delete objects below the prefix. Several programs may use it at the same time.
 *
 * @throws InvalidInputError if an option is wrong.
 *
 * @example
 * const store = s3Store({ client: new S3Client({ region: "eu-central-1" }), bucket: "acme", prefix: "checkpoints/" });
 */
export function s3Store({ client, bucket, prefix = "" }: S3StoreOptions): CheckpointStore {
  if (!isS3Client(client)) {
    throw new InvalidInputError("s3Store needs an S3Client of @aws-sdk/client-s3", {
      remedy: "Pass `client: new S3Client({ region })`.",
      option: "client",
    });
  }
  if (typeof bucket !== "string" || bucket === "") {
    throw new InvalidInputError("s3Store needs the name of a bucket", { remedy: "Pass `bucket`.", option: "bucket" });
  }
  return new ObjectStore(new S3Storage({ client, bucket, prefix }));
}
