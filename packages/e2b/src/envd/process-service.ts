import type { JsonObject, JsonValue } from "@fenced/core";
import * as z from "zod";
import type { Sandbox } from "../control/sandbox.ts";
import { ConnectError } from "./connect-error.ts";
import { bytesSchema, type Call, serverStream, unary } from "./connect-protocol.ts";
import type { ProcessEvent } from "./process-events.ts";
import type { FollowedProcess, ProcessSelector, SandboxProcess } from "./sandbox-processes.ts";
import { keepaliveMs, withKeepalives } from "./with-keepalives.ts";

const words = z.string().regex(/^[^\0]*$/, "must not contain a NUL character");
const variables = z.record(z.string().regex(/^[^=\0]+$/, "is not the name of a variable"), words);
const size = z.object({ cols: z.int().min(1).max(65_535), rows: z.int().min(1).max(65_535) });
const selector: z.ZodType<ProcessSelector> = z.union([z.object({ pid: z.int() }), z.object({ tag: z.string() })]);
const selected = z.object({ process: selector });
const startSchema = z.object({
  process: z.object({
    cmd: words.min(1),
    args: z.array(words).default([]),
    envs: variables.default({}),
    cwd: words.optional(),
  }),
  pty: z.object({ size }).optional(),
  tag: z.string().max(1000).optional(),
  stdin: z.boolean().default(true),
});
const inputSchema = z.object({
  process: selector,
  input: z.union([z.object({ stdin: bytesSchema }), z.object({ pty: bytesSchema })]),
});
const signalSchema = z.object({ process: selector, signal: z.union([z.string(), z.number()]) });
const updateSchema = z.object({ process: selector, pty: z.object({ size }).optional() });

/** Signals that clients may send, as the protocol names them. */
const signals: ReadonlyMap<string | number, "SIGKILL" | "SIGTERM"> = new Map<string | number, "SIGKILL" | "SIGTERM">([
  ["SIGNAL_SIGKILL", "SIGKILL"],
  [9, "SIGKILL"],
  ["SIGNAL_SIGTERM", "SIGTERM"],
  [15, "SIGTERM"],
]);

/** Answers a call of `process.Process`. */
export async function processService(method: string, request: Request, sandbox: Sandbox): Promise<Response> {
  const { processes } = sandbox;
  switch (method) {
    case "Start":
      return serverStream(request, sandbox, startSchema, (message, call) => start(sandbox, message, call));
    case "Connect":
      return serverStream(request, sandbox, selected, (message, call) =>
        told(() => processes.follow(message.process, call.signal), call),
      );
    case "List":
      return unary(request, sandbox, z.unknown(), async () => ({
        processes: (await processes.running()).map((each) => described(each)),
      }));
    case "SendInput":
      return unary(request, sandbox, inputSchema, async ({ process, input }) => {
        const bytes = "stdin" in input ? input.stdin : input.pty;
        await processes.write(process, bytes);
        return {};
      });
    case "CloseStdin":
      return unary(request, sandbox, selected, async ({ process }) => {
        await processes.closeInput(process);
        return {};
      });
    case "SendSignal":
      return unary(request, sandbox, signalSchema, async ({ process, signal: name }) => {
        const known = signals.get(name);
        if (!known) throw new ConnectError("unimplemented", "Only SIGKILL and SIGTERM can be sent");
        await processes.signal(process, known);
        return {};
      });
    case "Update":
      return unary(request, sandbox, updateSchema, async ({ process, pty }) => {
        if (pty) await processes.resize(process, pty.size);
        return {};
      });
    default:
      return unary(request, sandbox, z.unknown(), async () => {
        throw new ConnectError("unimplemented", `process.Process has no method ${method} here`);
      });
  }
}

function start(
  { processes }: Sandbox,
  { process: config, pty, tag, stdin }: z.infer<typeof startSchema>,
  call: Call,
): AsyncGenerator<JsonValue, void, void> {
  const timeoutMs = timeLimit(call.headers);
  const wanted = { config, tag, hasInput: stdin && !pty, terminal: pty?.size, timeoutMs };
  return told(() => processes.start(wanted, call.signal), call);
}

/** Yields the events of a process. */
async function* told(follow: () => Promise<FollowedProcess>, { headers }: Call): AsyncGenerator<JsonValue, void, void> {
  const { pid, events } = await follow();
  yield { event: { start: { pid } } };
  for await (const event of withKeepalives(events, keepaliveMs(headers))) yield { event: eventOf(event) };
}

function eventOf(event: ProcessEvent | "keepalive"): JsonObject {
  if (event === "keepalive") return { keepalive: {} };
  if (event.kind !== "end") return { data: { [event.kind]: Buffer.from(event.bytes).toString("base64") } };
  const { exitCode, exited, status, error } = event;
  return { end: { exitCode, exited, status, ...(error !== undefined && { error }) } };
}

function described({ pid, tag, config }: SandboxProcess): JsonObject {
  const { cmd, args, envs, cwd } = config;
  return {
    pid,
    ...(tag !== undefined && { tag }),
    config: { cmd, args: [...args], envs: { ...envs }, ...(cwd !== undefined && { cwd }) },
  };
}

/** @throws ConnectError if the header is not a number of milliseconds. */
function timeLimit(headers: Headers): number | undefined {
  const text = headers.get("connect-timeout-ms");
  if (text === null) return undefined;
  if (!/^\d{1,10}$/.test(text)) throw new ConnectError("invalid_argument", "Connect-Timeout-Ms is not a number");
  return Number(text) > 0 ? Number(text) : undefined;
}
