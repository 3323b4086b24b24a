import type { Reporter, TestCase, TestModule } from "vitest/node";
import type { BackendName, Backends } from "./backends.ts";

/**
 * Ends the run's report with a table of backends, and fails the run if a required one is missing. In a task of turbo, of which
 * there are many, it names only those.
 */
export class BackendReporter implements Reporter {
  readonly #backends: Backends;
  readonly #required: readonly BackendName[];

  constructor(backends: Backends, required: readonly BackendName[]) {
    this.#backends = backends;
    this.#required = required;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const uses = countUses(modules);
    const all = Object.keys(this.#backends) as BackendName[];
    const names = process.env.TURBO_HASH === undefined ? all : this.#missing();
    const width = Math.max(...names.map((name) => name.length));
    const lines = names.map((name) => `  ${name.padEnd(width)}  ${this.#describe(name, uses.get(name) ?? 0)}`);
    // After the summary, which the default reporter prints on the same event.
    if (lines.length > 0) setImmediate(() => process.stdout.write(`\n Backends\n${lines.join("\n")}\n\n`));

    if (this.#missing().length > 0) process.exitCode = 1;
  }

  #missing(): BackendName[] {
    return this.#required.filter((name) => !this.#backends[name].available);
  }

  #describe(name: BackendName, tests: number): string {
    const status = this.#backends[name];
    if (status.available) {
      return tests > 0
        ? `took part (${status.version}, ${counted(tests)})`
        : `available (${status.version}), not needed by any test of this run`;
    }
    const verdict = this.#required.includes(name)
      ? "MISSING although FENCED_REQUIRE names it"
      : `skipped (${counted(tests)})`;
    return `${verdict}: ${status.reason}. To get it: ${status.remedy}.`;
  }
}

function countUses(modules: readonly TestModule[]): Map<BackendName, number> {
  const uses = new Map<BackendName, number>();
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      for (const name of backendsOf(test)) uses.set(name, (uses.get(name) ?? 0) + 1);
    }
  }
  return uses;
}

function backendsOf(test: TestCase): Set<BackendName> {
  const names = new Set(test.meta().backends);
  for (let parent = test.parent; parent.type === "suite"; parent = parent.parent) {
    for (const name of parent.meta().backends ?? []) names.add(name);
  }
  return names;
}

function counted(tests: number): string {
  return tests === 1 ? "1 test" : `${tests} tests`;
}
