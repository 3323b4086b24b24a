import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { sandboxTemplate } from "../../src/index.ts";
import { ask, image } from "./cluster.ts";

const group = "extensions.agents.x-k8s.io";
const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const name = { type: "object", required: ["name"], properties: { name: { type: "string" } } };

/** The resources of agent-sandbox v1beta1, with the fields that Fenced and its tests use, from its public documentation. */
const resources = [
  ["agents.x-k8s.io", "Sandbox", "sandboxes", { podTemplate: open }, ["podTemplate"]],
  [
    group,
    "SandboxTemplate",
    "sandboxtemplates",
    {
      podTemplate: open,
      networkPolicy: open,
      networkPolicyManagement: { type: "string", enum: ["Managed", "Unmanaged"], default: "Managed" },
    },
    ["podTemplate"],
  ],
  [
    group,
    "SandboxWarmPool",
    "sandboxwarmpools",
    { replicas: { type: "integer", minimum: 0, default: 1 }, sandboxTemplateRef: name },
    ["sandboxTemplateRef"],
  ],
  [
    group,
    "SandboxClaim",
    "sandboxclaims",
    {
      warmPoolRef: name,
      lifecycle: {
        type: "object",
        properties: {
          shutdownTime: { type: "string", format: "date-time" },
          ttlSecondsAfterFinished: { type: "integer", minimum: 0 },
          shutdownPolicy: { type: "string", enum: ["Delete", "DeleteForeground", "Retain"], default: "Retain" },
        },
      },
      additionalPodMetadata: {
        type: "object",
        properties: { labels: { type: "object", additionalProperties: { type: "string", maxLength: 63 } } },
      },
    },
    ["warmPoolRef"],
  ],
] as const;

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** Applies the resources to the cluster, if they are not there, and waits until it serves them. */
export async function applyResources(): Promise<void> {
  for (const [apiGroup, kind, plural, properties, required] of resources) {
    const spec = { type: "object", properties, required };
    const schema = { type: "object", required: ["spec"], properties: { spec, status: open } };
    const version = { name: "v1beta1", served: true, storage: true, subresources: { status: {} } };
    await ask("POST", definitions, {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${plural}.${apiGroup}` },
      spec: {
        group: apiGroup,
        scope: "Namespaced",
        names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
        versions: [{ ...version, schema: { openAPIV3Schema: schema } }],
      },
    }).catch(ignoreConflict);
    const served = () => ask("GET", `/apis/${apiGroup}/v1beta1/${plural}`).catch(() => undefined);
    while ((await served()) === undefined) await sleep(100);
  }
}

/** The API path of the objects of a kind. */
export function placeOf(namespace: string, plural: string): string {
  const apiGroup = plural === "sandboxes" ? "agents.x-k8s.io" : group;
  return `/apis/${apiGroup}/v1beta1/namespaces/${namespace}/${plural}`;
}

/** Creates a pool `python`; without another template, of the pods that Fenced creates. */
export async function makePool(
  namespace: string,
  settings: { template?: object; replicas?: number } = {},
): Promise<void> {
  const { replicas = 1, template = sandboxTemplate("python", { image, labels: { tier: "code" } }) } = settings;
  await ask("POST", placeOf(namespace, "sandboxtemplates"), template);
  await ask("POST", placeOf(namespace, "sandboxwarmpools"), {
    apiVersion: "extensions.agents.x-k8s.io/v1beta1",
    kind: "SandboxWarmPool",
    metadata: { name: "python" },
    spec: { replicas, sandboxTemplateRef: { name: "python" } },
  });
}

const entity = z.looseObject({
  apiVersion: z.string().optional(),
  metadata: z.looseObject({
    name: z.string(),
    uid: z.string(),
    labels: z.record(z.string(), z.string()).default({}),
  }),
  spec: z.looseObject({}),
  status: z.looseObject({ phase: z.string().optional(), sandbox: z.looseObject({}).optional() }).default({}),
});
type Entity = z.output<typeof entity>;
const list = z.object({ items: z.array(entity) });
const claimSpec = z.object({
  warmPoolRef: z.object({ name: z.string() }),
  additionalPodMetadata: z.object({ labels: z.record(z.string(), z.string()).default({}) }).default({ labels: {} }),
});
const poolSpec = z.object({ replicas: z.number(), sandboxTemplateRef: z.object({ name: z.string() }) });
const templateSpec = z.object({
  podTemplate: z.object({ metadata: z.looseObject({}).default({}), spec: z.looseObject({}) }),
});
const poolLabel = "agents.x-k8s.io/warm-pool-sandbox";

/**
 * Acts as agent-sandbox in one namespace: fills its pools with sandboxes, and gives them to claims. The cluster's own collector
 * deletes what belongs to them. For `await using`.
 */
export class AgentSandbox implements AsyncDisposable {
  readonly #namespace: string;
  readonly #end = new AbortController();
  readonly #running: Promise<void>;
  #made = 0;

  constructor(namespace: string) {
    this.#namespace = namespace;
    this.#running = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#end.signal.aborted) {
      for (const pool of await this.#list("sandboxwarmpools")) await this.#fill(pool);
      for (const claim of await this.#list("sandboxclaims")) {
        if (claim.status.sandbox) await this.#deleteEnded(claim);
        else await this.#serve(claim);
      }
      await sleep(100, undefined, { signal: this.#end.signal }).catch(() => {});
    }
  }

  async #fill(pool: Entity): Promise<void> {
    const { replicas, sandboxTemplateRef } = poolSpec.parse(pool.spec);
    const sandboxes = await this.#free(pool.metadata.name);
    const template = await this.#find("sandboxtemplates", sandboxTemplateRef.name);
    if (template) for (let count = sandboxes.length; count < replicas; count++) await this.#make(pool, template);
    const ready = await this.#ready(sandboxes);
    const status = { replicas: sandboxes.length, readyReplicas: ready.length };
    await this.#status("sandboxwarmpools", pool, status);
  }

  /** A sandbox, and its pod of the same name. */
  async #make(pool: Entity, template: Entity): Promise<void> {
    const { podTemplate } = templateSpec.parse(template.spec);
    const labels = { [poolLabel]: pool.metadata.name };
    const made = `${pool.metadata.name}-${(this.#made += 1)}`;
    const sandbox = await ask("POST", placeOf(this.#namespace, "sandboxes"), {
      apiVersion: "agents.x-k8s.io/v1beta1",
      kind: "Sandbox",
      metadata: { name: made, labels, ownerReferences: [ownerReference(group, "SandboxWarmPool", pool)] },
      spec: { podTemplate },
    });
    const owner = ownerReference("agents.x-k8s.io", "Sandbox", entity.parse(sandbox));
    const metadata = { ...podTemplate.metadata, name: made, ownerReferences: [owner] };
    await ask("POST", this.#pods, { metadata, spec: podTemplate.spec });
  }

  async #serve(claim: Entity): Promise<void> {
    const { warmPoolRef, additionalPodMetadata } = claimSpec.parse(claim.spec);
    const pool = await this.#find("sandboxwarmpools", warmPoolRef.name);
    const template = pool && poolSpec.parse(pool.spec).sandboxTemplateRef.name;
    if (template === undefined || !(await this.#find("sandboxtemplates", template))) {
      await this.#condition(claim, "False", "TemplateNotFound", `SandboxTemplate ${template ?? ""} not found`);
      return;
    }
    const [sandbox] = await this.#ready(await this.#free(warmPoolRef.name));
    if (!sandbox) {
      await this.#condition(claim, "False", "SandboxNotReady", "Sandbox is not ready");
      return;
    }
    const { [poolLabel]: _, ...labels } = sandbox.metadata.labels;
    const ownerReferences = [ownerReference(group, "SandboxClaim", claim)];
    const place = `${placeOf(this.#namespace, "sandboxes")}/${sandbox.metadata.name}`;
    await ask("PUT", place, { ...sandbox, metadata: { ...sandbox.metadata, labels, ownerReferences } });
    const pod = entity.parse(await ask("GET", `${this.#pods}/${sandbox.metadata.name}`));
    await ask("PUT", `${this.#pods}/${sandbox.metadata.name}`, {
      ...pod,
      metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...additionalPodMetadata.labels } },
    }).catch(ignoreConflict);
    await this.#condition(claim, "True", "DependenciesReady", "", { sandbox: { name: sandbox.metadata.name } });
  }

  /** As `ttlSecondsAfterFinished: 0` asks for. */
  async #deleteEnded({ metadata, status }: Entity): Promise<void> {
    const { name: pod } = z.object({ name: z.string() }).parse(status.sandbox);
    const { phase } =
      list.parse(await ask("GET", this.#pods)).items.find((each) => each.metadata.name === pod)?.status ?? {};
    if (phase !== "Succeeded" && phase !== "Failed") return;
    await ask("DELETE", `${placeOf(this.#namespace, "sandboxclaims")}/${metadata.name}`).catch(ignoreConflict);
  }

  /** The sandboxes that nobody has claimed. */
  async #free(pool: string): Promise<Entity[]> {
    return (await this.#list("sandboxes")).filter(({ metadata }) => metadata.labels[poolLabel] === pool);
  }

  async #ready(sandboxes: readonly Entity[]): Promise<Entity[]> {
    const pods = list.parse(await ask("GET", this.#pods)).items;
    const running = new Set(
      pods.filter(({ status }) => status.phase === "Running").map(({ metadata }) => metadata.name),
    );
    return sandboxes.filter(({ metadata }) => running.has(metadata.name));
  }

  async #condition(claim: Entity, status: string, reason: string, message: string, more: object = {}): Promise<void> {
    const lastTransitionTime = new Date().toISOString();
    const conditions = [{ type: "Ready", status, reason, message, lastTransitionTime }];
    await this.#status("sandboxclaims", claim, { conditions, ...more });
  }

  async #status(plural: string, { metadata, spec, ...rest }: Entity, status: object): Promise<void> {
    const place = `${placeOf(this.#namespace, plural)}/${metadata.name}`;
    const current = await this.#find(plural, metadata.name);
    if (!current || JSON.stringify(current.status) === JSON.stringify(status)) return;
    const settled = { ...rest, metadata: current.metadata, spec, status };
    await ask("PUT", `${place}/status`, settled).catch(ignoreConflict);
  }

  async #find(plural: string, wanted: string): Promise<Entity | undefined> {
    return (await this.#list(plural)).find(({ metadata }) => metadata.name === wanted);
  }

  async #list(plural: string): Promise<Entity[]> {
    const items = list.parse(await ask("GET", placeOf(this.#namespace, plural))).items;
    const kind = resources.find(([, , each]) => each === plural);
    return items.map((item) => ({ apiVersion: `${kind?.[0] ?? ""}/v1beta1`, kind: kind?.[1], ...item }));
  }

  get #pods(): string {
    return `/api/v1/namespaces/${this.#namespace}/pods`;
  }
}

function ownerReference(apiGroup: string, kind: string, { metadata }: Entity): object {
  return { apiVersion: `${apiGroup}/v1beta1`, kind, name: metadata.name, uid: metadata.uid, controller: true };
}

/** Somebody else has changed, created or deleted it meanwhile; the next request gets its current state. */
function ignoreConflict(error: unknown): void {
  const status: unknown = error instanceof Error && Reflect.get(Object(error.cause), "status");
  if (status !== 409 && status !== 404) throw error;
}
