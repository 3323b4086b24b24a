import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { z } from "zod";
import { ask, namespace } from "./cluster.ts";
import { containersOf, processOf } from "./node.ts";

const policies = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      spec: z.object({ podSelector: z.object({ matchLabels: z.record(z.string(), z.string()).default({}) }) }),
    }),
  ),
});
const execute = promisify(execFile);
const pauseMs = 100;

/**
 * A network plugin for the cluster of `scripts/ci/kubernetes.sh`, which has none that enforces policies: denies by iptables, in the
 * pod's network namespace, what a policy of Fenced denies. For `await using`; as root.
 */
export class PolicyEnforcer implements AsyncDisposable {
  readonly #end = new AbortController();
  /** The pods that it has cut off. */
  readonly enforced = new Set<string>();
  readonly #namespace: string;
  readonly #running: Promise<void>;

  /** @param where - the namespace. Default: that of the tests. */
  constructor(where: string = namespace) {
    this.#namespace = where;
    this.#running = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#end.signal.aborted) {
      const list = await ask("GET", `/apis/networking.k8s.io/v1/namespaces/${this.#namespace}/networkpolicies`);
      for (const { metadata, spec } of policies.parse(list).items) {
        // The policy has its pod's name; the label of a claimed pod is the claim's.
        const pod = metadata.name;
        if (spec.podSelector.matchLabels["fenced.dev/pod"] === undefined || this.enforced.has(pod)) continue;
        this.enforced.add(pod);
        await deny(pod, this.#namespace).catch(async (error: unknown) => {
          // Docker knows a moment later whether the pod has ended.
          await sleep(1000);
          if ((await containersOf(pod, { where: this.#namespace, kind: "podsandbox" })).length > 0) throw error;
        });
      }
      await sleep(pauseMs, undefined, { signal: this.#end.signal }).catch(() => {});
    }
  }
}

async function deny(pod: string, where: string): Promise<void> {
  const [sandbox] = await containersOf(pod, { where, kind: "podsandbox" });
  // It may have ended already.
  if (sandbox === undefined) return;
  const enter = ["--net", "--target", await processOf(sandbox), "iptables"];
  for (const [chain, device] of [
    ["OUTPUT", "-o"],
    ["INPUT", "-i"],
  ] as const) {
    await execute("nsenter", [...enter, "-A", chain, "!", device, "lo", "-j", "DROP"]);
  }
}
