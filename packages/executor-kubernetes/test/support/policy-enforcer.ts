import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { z } from "zod";
import { ask, namespace } from "./cluster.ts";

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
 * pod's network namespace, what a policy of Fenced denies. For `await using`; as root. Only the tests' namespace has it.
 */
export class PolicyEnforcer implements AsyncDisposable {
  readonly #end = new AbortController();
  readonly #enforced = new Set<string>();
  readonly #running: Promise<void>;

  constructor() {
    this.#running = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#end.signal.aborted) {
      const list = await ask("GET", `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`);
      for (const { metadata, spec } of policies.parse(list).items) {
        const pod = spec.podSelector.matchLabels["fenced.dev/pod"];
        if (pod !== metadata.name || this.#enforced.has(pod)) continue;
        this.#enforced.add(pod);
        await deny(pod);
      }
      await sleep(pauseMs, undefined, { signal: this.#end.signal }).catch(() => {});
    }
  }
}

async function deny(pod: string): Promise<void> {
  const filters = [`label=io.kubernetes.pod.name=${pod}`, "label=io.kubernetes.docker.type=podsandbox"];
  const { stdout } = await execute("docker", ["ps", "--quiet", ...filters.flatMap((each) => ["--filter", each])]);
  const id = stdout.trim();
  // It may have ended already.
  if (id === "") return;
  const inspected = await execute("docker", ["inspect", "--format", "{{.State.Pid}}", id]);
  const enter = ["--net", "--target", inspected.stdout.trim(), "iptables"];
  for (const [chain, device] of [
    ["OUTPUT", "-o"],
    ["INPUT", "-i"],
  ] as const) {
    await execute("nsenter", [...enter, "-A", chain, "!", device, "lo", "-j", "DROP"]);
  }
}
