import { describe, expect, it } from "vitest";
import * as z from "zod";
import {
  type Component,
  ComponentError,
  type ComponentModel,
  defineComponent,
  loadComponent,
} from "../../src/index.ts";

class Counter {
  static readonly component: Component<Counter> = defineComponent({
    provider: "@fenced/x:Counter",
    componentType: "counter",
    version: 2,
    schema: z.strictObject({ count: z.number() }),
    secrets: ["token"],
    load: ({ count }) => new Counter(count),
  });

  readonly count: number;

  constructor(count: number) {
    this.count = count;
  }

  dumpComponent(settings: Readonly<Record<string, unknown>> = {}): ComponentModel {
    return Counter.component.dump({ count: this.count, ...settings });
  }
}

function load(model: ComponentModel): Promise<Counter> {
  return loadComponent<Counter>(model, { importModule: async () => ({ Counter }) });
}

describe("defineComponent", () => {
  it("dumps and loads a class", async () => {
    const model = new Counter(3).dumpComponent();
    expect(model).toEqual({
      provider: "@fenced/x:Counter",
      componentType: "counter",
      version: 2,
      config: { count: 3 },
    });
    expect((await load(model)).count).toBe(3);
  });

  it.each([
    ["another version", { version: 1 }, /supports version 2/],
    ["another type", { componentType: "agent" }, /supports componentType "counter"/],
    ["a config of the wrong shape", { config: { count: "3" } }, /config of @fenced\/x:Counter is not valid: count/],
    ["an unknown setting", { config: { count: 3, conut: 4 } }, /conut/],
  ])("rejects %s", async (_, change, message) => {
    await expect(load({ ...new Counter(3).dumpComponent(), ...change })).rejects.toThrow(message);
  });

  it("refuses to dump secrets and values that are not JSON", () => {
    const dump = (): ComponentModel => new Counter(3).dumpComponent({ token: "x", call: () => 1 });
    expect(dump).toThrow(/token is a secret; call is a function/);
    expect(dump).toThrow(ComponentError);
  });
});
