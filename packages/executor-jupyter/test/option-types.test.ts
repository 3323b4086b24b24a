import type {
  JupyterExecutorOptions,
  DockerJupyterServerOptions,
  LocalJupyterServerOptions,
} from "@fenced/executor-jupyter";
import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<JupyterExecutorOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<DockerJupyterServerOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<LocalJupyterServerOptions>>().toBeNever();
});
