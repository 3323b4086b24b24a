import { expect, it } from "vitest";
import { WasmCodeExecutor } from "../src/index.ts";

it("keepAliveMs is refused with the reason, and what to do instead", () => {
  const create = (keepAliveMs: number) => {
    const options = { timeoutMs: 1000, keepAliveMs };
    return new WasmCodeExecutor(options);
  };
  expect(() => create(1000)).toThrow(/keepAliveMs.*not possible in WebAssembly.*checkpoints/s);
  expect(create(0).capabilities.keepAlive).toBeUndefined();
});
