import { createHash } from "node:crypto";
import { FencedError, type JsonObject, parseJson, QuotaExceededError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { isSameSecret } from "@fenced/core/runtime";
import { httpStatus } from "@fenced/core/web";
import { Hono, type Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import * as z from "zod";
import type { E2BHandlerOptions, ReportingOptions } from "../e2b-handler-options.ts";
import { E2BFailure } from "./e2b-failure.ts";
import { egressFields, type EgressRules, egressRules, isGiven, type WantedEgress } from "./egress-rules.ts";
import type { KnownSandbox, LogEntry } from "./known-sandbox.ts";
import { listed } from "./list-sandboxes.ts";
import { pageOf } from "./pages.ts";
import type { Sandboxes } from "./sandboxes.ts";
import { type Snapshot, snapshotName } from "./snapshots.ts";
import type { Usage } from "./usage-log.ts";

/** The version of E2B's `envd` whose behaviour this server has; clients choose by it what they send. */
const envdVersion = "0.6.4";

/** How long a sandbox may take to say what it uses, in milliseconds. */
const measuringMs = 2000;

const seconds = z.int().min(0).max(31_536_000);
const variables = z.record(z.string().regex(/^[^=\0]+$/), z.string().regex(/^[^\0]*$/));
const createSchema = z.object({
  templateID: z.string(),
  timeout: seconds.optional(),
  metadata: z.record(z.string(), z.string()).default({}),
  envVars: variables.default({}),
  secure: z.boolean().optional(),
  autoPause: z.boolean().nullish(),
  allow_internet_access: z.boolean().nullish(),
  autoResume: z.object({ enabled: z.boolean() }).nullish(),
  network: z
    .looseObject({
      ...egressFields,
      allowPublicTraffic: z.boolean().nullish(),
      maskRequestHost: z
        .string()
        .max(300)
        .regex(/^[\w.-]+(?::(?:\d+|\$\{PORT\}))?$/, "must be a host name, perhaps with a port: localhost:${PORT}")
        .nullish(),
    })
    .partial()
    .nullish(),
  mcp: z.unknown().optional(),
  iam: z.unknown().optional(),
  volumeMounts: z.array(z.unknown()).nullish(),
});
const networkSchema = z.looseObject({ ...egressFields, allow_internet_access: z.boolean().nullish() }).partial();
const timeoutSchema = z.object({ timeout: seconds });
const pauseSchema = z.object({ memory: z.boolean().nullish() });
const connectSchema = z.object({ timeout: seconds.optional() });
const forkSchema = z.object({ timeout: seconds.default(15), count: z.int().min(1).max(100).default(1) });
const snapshotSchema = z.object({ name: snapshotName.nullish() });

/** The network that a request wants, with what its client may know and this server does not. */
type WantedNetwork = Omit<WantedEgress, "allow_internet_access"> & {
  readonly allow_internet_access?: boolean | null | undefined;
};

interface Variables {
  readonly Variables: { owner: string };
}

/** What only E2B's own service has, by the beginning of its path. */
const cloudOnly: readonly (readonly [path: string, what: string])[] = [
  ["templates", "Templates are defined by the server's operator: see its option --template"],
  ["v2/templates", "Templates are defined by the server's operator: see its option --template"],
  ["v3/templates", "Templates are defined by the server's operator: see its option --template"],
  ["volumes", "This server has no volumes; write to the sandbox's files"],
  ["volumecontent", "This server has no volumes; write to the sandbox's files"],
  ["secrets", "This server keeps no secrets; pass variables with `envs`"],
  ["teams", "This server has no teams; it has API keys"],
];

/** The control API: sandboxes are created, found and ended over it. */
export function controlApi(options: ReportingOptions, sandboxes: Sandboxes): Hono<Variables> {
  const app = new Hono<Variables>();
  const owners = options.apiKeys.map((key) => ({ key, owner: createHash("sha256").update(key).digest("hex") }));
  app.onError((error, { req }) => failure(error, req.raw.signal, options.onError));
  app.notFound((context) => context.json({ code: 404, message: "Not found" }, 404));
  app.get("/health", (context) => context.body(null, 204));
  app.use(bodyLimit({ maxSize: 1_048_576, onError: () => refuse(400, "The request has more than 1 MiB") }));
  app.use(async (context, next) => {
    const given = context.req.header("x-api-key");
    // All keys are compared, so that the time does not tell which one it is.
    const [found] = owners.filter(({ key }) => isSameSecret(key, given));
    if (!found) return refuse(401, "The API key is missing or not valid; set E2B_API_KEY to a key of this server");
    context.set("owner", found.owner);
    return next();
  });

  const find = (context: Context<Variables>): KnownSandbox => {
    const id = context.req.param("id") ?? "";
    const sandbox = sandboxes.find(id, context.var.owner);
    if (sandbox) return sandbox;
    throw new E2BFailure(404, `sandbox "${id}" not found`);
  };

  for (const version of ["", "/v2"]) {
    app.post(`${version}/sandboxes`, async (context) => {
      const wanted = await bodyOf(context, createSchema);
      assertPossible(wanted, sandboxes);
      const { templateID, metadata, envVars, timeout = version === "" ? 15 : 300 } = wanted;
      const sandbox = await sandboxes.create({
        templateId: templateID,
        owner: context.var.owner,
        metadata,
        env: envVars,
        isSecure: version !== "" || (wanted.secure ?? false),
        rules: rulesOf({ ...wanted.network, allow_internet_access: wanted.allow_internet_access }, otherFields),
        allowPublicTraffic: wanted.network?.allowPublicTraffic ?? true,
        maskRequestHost: wanted.network?.maskRequestHost ?? undefined,
        timeoutMs: timeout * 1000,
        onTimeout: wanted.autoPause === true ? "pause" : "kill",
        autoResume: wanted.autoResume?.enabled === true,
        signal: context.req.raw.signal,
      });
      return context.json(described(sandbox, options), 201);
    });
    app.post(`${version}/sandboxes/:id/connect`, async (context) => {
      const { timeout = version === "" ? 15 : 300 } = await bodyOf(context, connectSchema);
      const sandbox = find(context);
      const isResumed = await sandboxes.resume(sandbox, timeout * 1000, context.req.raw.signal);
      return context.json(described(sandbox, options), isResumed ? 201 : 200);
    });
    app.get(`${version}/sandboxes`, (context) => {
      const { items, next } = listed(sandboxes.all(context.var.owner), new URL(context.req.url).searchParams);
      if (next !== undefined) context.header("x-next-token", next);
      return context.json(items.map((sandbox) => detailed(sandbox)));
    });
  }
  app.get("/sandboxes/:id", async (context) => {
    const sandbox = find(context);
    // Code can keep it from being measured.
    const usage = await within(measuringMs, sandbox.sandbox?.usage() ?? Promise.resolve([])).catch(() => undefined);
    return context.json({ ...described(sandbox, options), ...detailed(sandbox, usage?.at(-1)) });
  });
  app.delete("/sandboxes/:id", async (context) => {
    await sandboxes.kill(find(context));
    return context.body(null, 204);
  });
  app.post("/sandboxes/:id/timeout", async (context) => {
    // The body may take its time, in which the sandbox can end.
    const { timeout } = await bodyOf(context, timeoutSchema);
    const sandbox = find(context);
    await sandboxes.setTimeout(sandbox, timeout * 1000);
    return context.body(null, 204);
  });
  app.post("/sandboxes/:id/refreshes", (context) => {
    find(context);
    return context.body(null, 204);
  });
  app.get("/sandboxes/:id/metrics", async (context) => {
    const usage = (await find(context).sandbox?.usage()) ?? [];
    const [start, end] = [Number(context.req.query("start") ?? 0), Number(context.req.query("end") ?? Infinity)];
    return context.json(usage.filter(({ timestampUnix: at }) => at >= start && at <= end));
  });
  app.post("/sandboxes/:id/pause", async (context) => {
    const { memory } = await bodyOf(context, pauseSchema);
    // E2B's client asks for it by default, and RFC 7240 has a word for those who want nothing less than they ask for.
    const isStrict = /\bhandling=strict\b/i.test(context.req.header("prefer") ?? "");
    if (memory === true && isStrict) {
      throw new E2BFailure(501, "This server keeps the files of a paused sandbox, not its memory");
    }
    await sandboxes.pause(find(context));
    return context.body(null, 204);
  });
  app.post("/sandboxes/:id/resume", async (context) => {
    const { timeout = 15 } = await bodyOf(context, connectSchema);
    const sandbox = find(context);
    if (sandbox.state === "running") throw new E2BFailure(409, `sandbox "${sandbox.settings.id}" is already running`);
    await sandboxes.resume(sandbox, timeout * 1000, context.req.raw.signal);
    return context.json(described(sandbox, options), 201);
  });
  app.post("/sandboxes/:id/fork", async (context) => {
    const { timeout, count } = await bodyOf(context, forkSchema);
    const { signal } = context.req.raw;
    const forks = await sandboxes.fork(find(context), { count, timeoutMs: timeout * 1000, signal });
    const answer = forks.map((fork) => {
      if (fork.status === "fulfilled") return { sandbox: described(fork.value, options) };
      const { status: code, message } = told(fork.reason, signal, options.onError);
      return { error: { code, message } };
    });
    return context.json(answer, 201);
  });
  app.post("/sandboxes/:id/snapshots", async (context) => {
    const { name } = await bodyOf(context, snapshotSchema);
    return context.json(inList(await sandboxes.snapshot(find(context), name ?? undefined)), 201);
  });
  app.get("/snapshots", (context) => {
    const query = new URL(context.req.url).searchParams;
    const [sandboxId, name] = [query.get("sandboxID"), query.get("name")?.replace(/:default$/, "") ?? null];
    const matching = sandboxes.snapshots
      .all(context.var.owner)
      .filter((each) => sandboxId === null || each.sandboxId === sandboxId)
      .filter((each) => name === null || each.name === name || each.id === name);
    const { items, next } = pageOf(
      matching.map((snapshot) => ({ snapshot, id: snapshot.id, at: snapshot.createdAt })),
      query,
    );
    if (next !== undefined) context.header("x-next-token", next);
    return context.json(items.map(({ snapshot }) => inList(snapshot)));
  });
  app.delete("/templates/:id", async (context) => {
    const id = context.req.param("id");
    if (Object.hasOwn(options.templates, id)) {
      throw new E2BFailure(501, "Templates are defined by the server's operator: see its option --template");
    }
    await sandboxes.snapshots.delete(context.var.owner, id);
    return context.body(null, 204);
  });
  app.put("/sandboxes/:id/network", async (context) => {
    const wanted = await bodyOf(context, networkSchema);
    const sandbox = find(context);
    await sandboxes.setRules(sandbox, rulesOf(wanted));
    return context.body(null, 204);
  });
  app.get("/sandboxes/:id/logs", (context) => {
    const entries = logOf(find(context), new URL(context.req.url).searchParams);
    const lines = entries.map(({ at, message }) => ({ timestamp: at.toISOString(), line: message }));
    return context.json({ logs: lines, logEntries: entries.map((entry) => structured(entry)) });
  });
  app.get("/v2/sandboxes/:id/logs", (context) => {
    const entries = logOf(find(context), new URL(context.req.url).searchParams);
    return context.json({ logs: entries.map((entry) => structured(entry)) });
  });
  for (const [path, message] of cloudOnly) {
    for (const each of [`/${path}`, `/${path}/*`]) {
      app.all(each, () => {
        throw new E2BFailure(501, message);
      });
    }
  }
  return app;
}

/** @throws E2BFailure if a sandbox cannot be as its client wants it. */
function assertPossible(
  { autoPause, autoResume, mcp, iam, volumeMounts }: z.infer<typeof createSchema>,
  sandboxes: Sandboxes,
): void {
  if (autoResume?.enabled === true && autoPause !== true) {
    throw new E2BFailure(400, "autoResume: it needs autoPause");
  }
  if (autoPause === true) sandboxes.assertKeeps();
  if (isGiven(mcp)) throw new E2BFailure(501, "This server has no MCP gateway");
  if (isGiven(iam)) throw new E2BFailure(501, "This server issues no identity tokens");
  if (isGiven(volumeMounts)) throw new E2BFailure(501, "This server has no volumes");
}

/** What is not an outgoing rule in the network of a new sandbox. */
const otherFields = ["allowPublicTraffic", "maskRequestHost"];

/**
 * @param others - the fields that are no rules.
 * @throws E2BFailure if a rule cannot be enforced. One that is not known could be a restriction that is not kept.
 */
function rulesOf(
  { allow_internet_access: internet, ...network }: WantedNetwork,
  others: readonly string[] = [],
): EgressRules {
  const known = [...Object.keys(egressFields), ...others];
  const unknown = Object.entries(network).find(([name, value]) => !known.includes(name) && isGiven(value));
  if (unknown) throw new E2BFailure(501, `network.${unknown[0].slice(0, 100)}: this server does not support it`);
  return egressRules({ ...network, allow_internet_access: internet ?? true });
}

async function bodyOf<T>({ req }: Context, schema: z.ZodType<T>): Promise<T> {
  const text = await req.text();
  const body = schema.safeParse(parse(text === "" ? "{}" : text));
  if (body.success) return body.data;
  const [issue] = body.error.issues;
  throw new E2BFailure(400, `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "wrong"}`);
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new E2BFailure(400, "The request's body is not valid JSON");
  }
}

function named({ settings }: KnownSandbox): JsonObject {
  const { id, templateId } = settings;
  return { sandboxID: id, templateID: templateId, alias: templateId, clientID: "fenced", envdVersion };
}

/** What a client needs to use a sandbox. */
function described(sandbox: KnownSandbox, { domain }: E2BHandlerOptions): JsonObject {
  const { token, trafficToken } = sandbox;
  return {
    ...named(sandbox),
    trafficAccessToken: trafficToken,
    ...(token !== undefined && { envdAccessToken: token }),
    ...(domain !== undefined && { domain }),
  };
}

function detailed(sandbox: KnownSandbox, usage?: Usage): JsonObject {
  const { settings, rules, startedAt, endAt, state } = sandbox;
  return {
    ...named(sandbox),
    startedAt: startedAt.toISOString(),
    endAt: endAt.toISOString(),
    state,
    metadata: { ...settings.metadata },
    allowInternetAccess: rules.allowInternetAccess,
    network: {
      ...(rules.allowOut.length > 0 && { allowOut: [...rules.allowOut] }),
      ...(rules.denyOut.length > 0 && { denyOut: [...rules.denyOut] }),
      allowPublicTraffic: settings.allowPublicTraffic,
      ...(settings.maskRequestHost !== undefined && { maskRequestHost: settings.maskRequestHost }),
    },
    lifecycle: { onTimeout: settings.onTimeout, autoResume: settings.autoResume },
    ...(usage && {
      cpuCount: usage.cpuCount,
      memoryMB: Math.round(usage.memTotal / 1_048_576),
      diskSizeMB: Math.round(usage.diskTotal / 1_048_576),
    }),
  };
}

/** A snapshot as clients have it. */
function inList({ id, name }: Snapshot): JsonObject {
  return { snapshotID: id, names: name === undefined ? [] : [name] };
}

/** Which entries a query asks for: those from a time on, at most so many. */
function logOf({ log }: KnownSandbox, query: URLSearchParams): readonly LogEntry[] {
  const [start, limit] = [Number(query.get("start") ?? query.get("cursor") ?? 0), Number(query.get("limit") ?? 1000)];
  const found = log.filter(({ at }) => !(at.getTime() < start));
  return Number.isInteger(limit) && limit >= 0 ? found.slice(0, limit) : found;
}

function structured({ at, level, message }: LogEntry): JsonObject {
  return { timestamp: at.toISOString(), level, message, fields: {} };
}

/** What a client is told of an error. Everything else is reported, unless the client has gone. */
function told(
  error: unknown,
  gone: AbortSignal,
  onError: (error: unknown) => void,
): { readonly status: number; readonly message: string } {
  if (error instanceof E2BFailure) return error;
  const status = httpStatus(error);
  if (status === 500 && !gone.aborted) onError(error);
  return { status, message: FencedError.isInstance(error) ? error.message : "Internal error; see the server's log" };
}

function failure(error: unknown, gone: AbortSignal, onError: (error: unknown) => void): Response {
  const { status, message } = told(error, gone, onError);
  const response = refuse(status, message);
  // Clients try again by themselves.
  if (QuotaExceededError.isInstance(error)) response.headers.set("retry-after", "1");
  return response;
}

function refuse(status: number, message: string): Response {
  return Response.json({ code: status, message }, { status });
}
