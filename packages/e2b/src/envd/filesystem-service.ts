import { isJsonValue, type JsonObject, type JsonValue } from "@fenced/core";
import * as z from "zod";
import type { Sandbox } from "../control/sandbox.ts";
import { ConnectError } from "./connect-error.ts";
import { type Call, serverStream, unary } from "./connect-protocol.ts";
import { keepaliveMs, withKeepalives } from "./with-keepalives.ts";

const path = z.string();
const pathSchema = z.object({ path: path.default("") });
const moveSchema = z.object({ source: path, destination: path });
const listSchema = z.object({ path: path.default(""), depth: z.int().min(0).default(1) });
const watchSchema = z.object({
  path: path.default(""),
  recursive: z.boolean().default(false),
  includeEntry: z.boolean().default(false),
});
const watcherSchema = z.object({ watcherId: z.string() });
/** What the guest says: JSON, and otherwise unchecked, because only clients of the same sandbox see it. */
const said: z.ZodType<JsonObject> = z.custom<JsonObject>(
  (value) => typeof value === "object" && !Array.isArray(value) && isJsonValue(value),
);

/** Answers a call of `filesystem.Filesystem`. */
export async function filesystemService(method: string, request: Request, sandbox: Sandbox): Promise<Response> {
  const ask = async (operation: string, parameters: JsonObject): Promise<JsonObject> => {
    const guest = await sandbox.guest();
    return (await guest.request(operation, parameters, said)).result;
  };
  switch (method) {
    case "Stat":
      return unary(request, sandbox, pathSchema, (message) => ask("stat", message));
    case "MakeDir":
      return unary(request, sandbox, pathSchema, (message) => ask("make", message));
    case "Remove":
      return unary(request, sandbox, pathSchema, (message) => ask("remove", message));
    case "Move":
      return unary(request, sandbox, moveSchema, (message) => ask("move", message));
    case "ListDir":
      return unary(request, sandbox, listSchema, (message) => ask("list", message));
    case "WatchDir":
      return serverStream(request, sandbox, watchSchema, (message, call) => watch(sandbox, message, call));
    case "CreateWatcher":
      return unary(request, sandbox, watchSchema, async ({ path: given, recursive, includeEntry }) => {
        const guest = await sandbox.guest();
        const parameters = { path: given, recursive, entries: includeEntry };
        return { watcherId: await sandbox.watchers.open(() => guest.watchDirectory(parameters)) };
      });
    case "GetWatcherEvents":
      return unary(request, sandbox, watcherSchema, async ({ watcherId }) => ({
        events: sandbox.watchers.take(watcherId),
      }));
    case "RemoveWatcher":
      return unary(request, sandbox, watcherSchema, async ({ watcherId }) => {
        sandbox.watchers.close(watcherId);
        return {};
      });
    default:
      return unary(request, sandbox, z.unknown(), async () => {
        throw new ConnectError("unimplemented", `filesystem.Filesystem has no method ${method} here`);
      });
  }
}

async function* watch(
  sandbox: Sandbox,
  { path: given, recursive, includeEntry }: z.infer<typeof watchSchema>,
  { signal, headers }: Call,
): AsyncGenerator<JsonValue, void, void> {
  const guest = await sandbox.guest();
  const events = guest.watch({ path: given, recursive, entries: includeEntry }, signal);
  for await (const event of withKeepalives(events, keepaliveMs(headers))) {
    if (event === "keepalive") yield { keepalive: {} };
    else if (event["started"] === true) yield { start: {} };
    else yield { filesystem: event };
  }
}
