import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { ask } from "./cluster.ts";

const names = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) });

/** A namespace for one test, for `await using`. */
export class TestNamespace implements AsyncDisposable {
  readonly name: string;

  private constructor(name: string) {
    this.name = name;
  }

  static async make(): Promise<TestNamespace> {
    const name = `fenced-test-${randomUUID()}`;
    await ask("POST", "/api/v1/namespaces", { metadata: { name } });
    // There are no pods without its service account, which appears a moment later.
    const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
    while ((await ask("GET", account).catch(() => undefined)) === undefined) await sleep(100);
    return new TestNamespace(name);
  }

  /** The names of its pods. */
  pods(): Promise<string[]> {
    return this.#names("/api/v1", "pods");
  }

  /** The names of its Jobs. */
  jobs(): Promise<string[]> {
    return this.#names("/apis/batch/v1", "jobs");
  }

  async #names(api: string, plural: string): Promise<string[]> {
    const { items } = names.parse(await ask("GET", `${api}/namespaces/${this.name}/${plural}`));
    return items.map(({ metadata }) => metadata.name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await ask("DELETE", `/api/v1/namespaces/${this.name}`);
  }
}
