import type {
  ExecuteOptions,
  StartOptions,
  ReadStreamOptions,
  ProcessOptions,
  AllowedNetwork,
  NetworkCredential,
} from "@fenced/core";
import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<ExecuteOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<StartOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<ReadStreamOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<ProcessOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<AllowedNetwork>>().toBeNever();
  expectTypeOf<RefusingUndefined<NetworkCredential>>().toBeNever();
});
