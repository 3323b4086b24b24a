import { parseJson } from "@fenced/core";
import { joinSignals, untilAborted } from "@fenced/core/abort";
import * as z from "zod";
import type { Sandbox } from "../control/sandbox.ts";
import { breakingBody } from "../envd/breaking-body.ts";
import { toConnectError } from "../envd/connect-protocol.ts";
import { BodyRefusal, readBody } from "../envd/read-body.ts";
import { withKeepalives } from "../envd/with-keepalives.ts";
import { line } from "./cell-lines.ts";
import type { Context } from "./context.ts";
import { InterpreterFailure } from "./interpreter-failure.ts";

/** After so many milliseconds without a line there is one that says nothing, because clients give up silent responses. */
const keepaliveMs = 5000;

const words = z.string().refine((value) => !value.includes("\0"), "must not contain a NUL character");
const executeSchema = z.object({
  code: words,
  context_id: z.string().nullish(),
  language: z.string().nullish(),
  env_vars: z.record(z.string().regex(/^[^=\0]+$/, "is not the name of a variable"), words).nullish(),
});
const contextSchema = z.object({ language: z.string().nullish(), cwd: words.nullish() });

/** Answers a request for the code interpreter of a sandbox. */
export async function interpreterApi(request: Request, sandbox: Sandbox): Promise<Response> {
  const { pathname } = new URL(request.url);
  // A client that was given the address with a slash at its end has two of them.
  const parts = pathname.split("/").filter((part) => part !== "");
  const route = `${request.method} ${parts.map((part, index) => (index === 1 ? ":id" : part)).join("/")}`;
  if (route === "GET health") return Response.json("OK");
  try {
    return await serve(request, sandbox, { route, id: parts[1] ?? "" });
  } catch (error) {
    return refusal(error, request.signal, sandbox);
  }
}

async function serve(
  request: Request,
  sandbox: Sandbox,
  { route, id }: { readonly route: string; readonly id: string },
): Promise<Response> {
  const { contexts } = sandbox;
  assertMayUse(request, sandbox);
  switch (route) {
    case "POST execute":
      return execute(request, sandbox);
    case "GET contexts":
      return Response.json(contexts.all.map(({ description }) => description));
    case "POST contexts": {
      const { language, cwd } = await parsed(request, contextSchema);
      const context = await untilAborted(contexts.create(language ?? undefined, cwd ?? undefined), sandbox.signal);
      return Response.json(context.description);
    }
    case "POST contexts/:id/restart":
      await untilAborted(contexts.find(id).restart(), sandbox.signal);
      return Response.json(null);
    case "DELETE contexts/:id":
      await untilAborted(contexts.remove(id), sandbox.signal);
      return Response.json(null);
    default:
      throw new InterpreterFailure(404, "Not found");
  }
}

async function execute(request: Request, { contexts, signal: ended }: Sandbox): Promise<Response> {
  const received = await readBody(request);
  try {
    const { code, context_id: id, language, env_vars: env } = checked(received.bytes, executeSchema);
    if (isGiven(id) && isGiven(language)) {
      throw new InterpreterFailure(400, "Only one of context_id or language can be provided");
    }
    const context = isGiven(id) ? contexts.find(id) : contexts.forLanguage(language ?? undefined);
    const leaving = new AbortController();
    const signal = joinSignals(request.signal, ended, leaving.signal);
    const pieces = linesOf(context, { code, env: env ?? {} }, signal);
    const body = breakingBody({ pieces, ended, leaving, received });
    return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
  } catch (error) {
    received[Symbol.dispose]();
    throw error;
  }
}

function isGiven(word: string | null | undefined): word is string {
  return typeof word === "string" && word !== "";
}

async function* linesOf(
  context: Context,
  execution: Parameters<Context["execute"]>[0],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const each of withKeepalives(context.execute(execution, signal), keepaliveMs)) {
    yield Buffer.from(each === "keepalive" ? line({ type: "keepalive" }) : each);
  }
  yield Buffer.from(line({ type: "end_of_execution" }));
}

/**
 * Clients send the token of the sandbox's traffic with everything, and that of `envd` with code.
 *
 * @throws InterpreterFailure if a request has neither.
 */
function assertMayUse({ headers }: Request, sandbox: Sandbox): void {
  if (sandbox.acceptsTraffic(headers.get("e2b-traffic-access-token"))) return;
  if (sandbox.accepts(headers.get("x-access-token"))) return;
  throw new InterpreterFailure(403, "The sandbox's access token is missing or not valid");
}

/** @throws InterpreterFailure if the request is not what it must be. */
async function parsed<T>(request: Request, schema: z.ZodType<T>): Promise<T> {
  using body = await readBody(request);
  return checked(body.bytes, schema);
}

function checked<T>(bytes: Uint8Array, schema: z.ZodType<T>): T {
  let content: unknown;
  try {
    content = parseJson(bytes);
  } catch (cause) {
    throw new InterpreterFailure(422, "The request is not valid JSON", { cause });
  }
  const found = schema.safeParse(content);
  if (found.success) return found.data;
  const [issue] = found.error.issues;
  throw new InterpreterFailure(422, `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "wrong"}`);
}

/** Clients show the text of a 404 and a 502, and the reason phrase of anything else. */
function refusal(error: unknown, gone: AbortSignal, sandbox: Sandbox): Response {
  if (error instanceof InterpreterFailure || error instanceof BodyRefusal) {
    return new Response(error.message, { status: error.status });
  }
  const { message, code } = toConnectError(error, gone, sandbox.report);
  return new Response(message, { status: code === "unavailable" ? 502 : 500 });
}
