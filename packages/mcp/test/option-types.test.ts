import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";
import type { McpHandlerOptions, McpHttpServerOptions, McpServerOptions } from "../src/index.ts";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<McpHandlerOptions<string>>>().toBeNever();
  expectTypeOf<RefusingUndefined<McpHttpServerOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<McpServerOptions>>().toBeNever();
});
