import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { checkOptions } from "@fenced/core/options";
import { isSameSecret, standardHeaders } from "@fenced/core/runtime";
import type { DrainOptions } from "@fenced/pool";
import { controlApi } from "./control/control-api.ts";
import type { KnownSandbox } from "./control/known-sandbox.ts";
import type { Sandbox } from "./control/sandbox.ts";
import { Sandboxes } from "./control/sandboxes.ts";
import { type E2BHandlerOptions, e2bHandlerOptions } from "./e2b-handler-options.ts";
import { envdApi } from "./envd/envd-api.ts";
import { isSigned, signedOperation } from "./envd/signature.ts";
import { interpreterApi } from "./interpreter/interpreter-api.ts";
import { portApi } from "./ports/port-api.ts";
import { type PortRefusal, trafficRefusal, unreachable } from "./ports/port-refusal.ts";
import { refuseUpgrade, upgradePort } from "./ports/port-upgrade.ts";

const [envdPort, interpreterPort] = [49_983, 49_999];
/** What of this server answers requests to a sandbox, by its port; programs in the sandbox answer for all others. */
const services: ReadonlyMap<number, (request: Request, sandbox: Sandbox) => Promise<Response>> = new Map([
  [envdPort, envdApi],
  [interpreterPort, interpreterApi],
]);

/** Handles requests of clients that speak E2B's protocol. */
export interface E2BHandler extends AsyncDisposable {
  /** Answers one request; never rejects. Mount it at all paths, and at all hosts that lead to sandboxes. */
  (request: Request): Promise<Response>;
  /**
   * Leads WebSockets to programs in sandboxes: `server.on("upgrade", handler.upgrade)`, with a server of `node:http`. Other
   * upgrades are refused.
   */
  readonly upgrade: (incoming: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /**
   * Kills all sandboxes, and resolves when nothing of them is left; with `stateDirectory`, leaves them to the next server.
   * Refuses new ones. Idempotent.
   *
   * @throws InvalidInputError if an option is wrong.
   */
  close(options?: DrainOptions): Promise<void>;
}

/**
 * Serves E2B's protocol: the unmodified package `e2b` then creates its sandboxes here. A function from a standard
 * `Request` to a `Response`, for Hono, Node, Deno, Bun and others.
 *
 * Clients set `E2B_API_KEY` to one of the keys, and both `E2B_API_URL` and `E2B_SANDBOX_URL` to the server's address; or,
 * with `domain`, only `E2B_DOMAIN`.
 *
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * const handler = createE2BHandler({
 *   templates: { base: () => new DockerCommandLineCodeExecutor({ workspacePath: "/home/user" }) },
 *   apiKeys: ["e2b_0123456789abcdef"],
 * });
 * serve({ fetch: handler, port: 3000 });
 */
export function createE2BHandler(options: E2BHandlerOptions): E2BHandler {
  const checked = checkOptions(e2bHandlerOptions, options, "createE2BHandler");
  const { domain, onError = warn } = checked;
  const sandboxes = new Sandboxes({ ...checked, onError });
  const control = controlApi({ ...checked, onError }, sandboxes);
  const answer = async (request: Request): Promise<Response> => {
    const address = addressOf(request, domain);
    if (!address) {
      const signed = bySignature(request, sandboxes);
      const signedFor = signed && (await sandboxes.reach(signed, mayUse(request, signed)));
      return signedFor ? envdApi(request, signedFor) : control.fetch(request);
    }
    const found = await findAt(request, address);
    if ("code" in found) return Response.json(found, { status: found.code });
    return services.get(address.port)?.(request, found) ?? portApi(request, found, address.port);
  };
  /** The sandbox at an address, or why it cannot be used. */
  const findAt = async (request: Request, { id, port }: SandboxAddress): Promise<Sandbox | PortRefusal> => {
    const known = sandboxes.find(id);
    const refusal =
      known && !services.has(port) ? trafficRefusal(known, request.headers.get("e2b-traffic-access-token")) : undefined;
    if (refusal) return refusal;
    const sandbox = known && (await sandboxes.reach(known, mayUse(request, known)));
    return sandbox ?? unreachable(id, "The sandbox was not found");
  };
  const upgradeTo = async (incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const request = headOf(incoming);
    const address = addressOf(request, domain);
    if (!address || services.has(address.port) || !/^websocket$/i.test(incoming.headers.upgrade ?? "")) {
      const message = "This server only upgrades connections to ports of sandboxes, to WebSockets";
      refuseUpgrade(socket, unreachable(address?.id ?? "", message));
      return;
    }
    const found = await findAt(request, address);
    if ("code" in found) refuseUpgrade(socket, found);
    else await upgradePort({ incoming, socket, head }, found, address.port);
  };
  const upgrade = (incoming: IncomingMessage, socket: Duplex, head: Buffer): void => {
    // Nobody is left to tell.
    socket.on("error", () => {});
    upgradeTo(incoming, socket, head).catch((error: unknown) => {
      onError(error);
      socket.destroy();
    });
  };
  const handle = async (request: Request): Promise<Response> => {
    try {
      return await answer(request);
    } catch (error) {
      onError(error);
      return Response.json({ code: 500, message: "Internal error; see the server's log" }, { status: 500 });
    }
  };
  let closing: Promise<void> | undefined;
  const close = (drain: DrainOptions = { graceMs: 0 }): Promise<void> => (closing ??= sandboxes.close(drain));
  return Object.assign(handle, { close, upgrade, [Symbol.asyncDispose]: () => close() });
}

/** A port of a sandbox. */
interface SandboxAddress {
  readonly id: string;
  readonly port: number;
}

/** Which sandbox a request is for: its headers say it, or its host name does. */
function addressOf({ headers, url }: Request, domain: string | undefined): SandboxAddress | undefined {
  const id = headers.get("e2b-sandbox-id");
  if (id !== null) return { id, port: Number(headers.get("e2b-sandbox-port") ?? envdPort) };
  if (domain === undefined) return undefined;
  const host = headers.get("host") ?? new URL(url).host;
  if (!host.endsWith(`.${domain}`)) return undefined;
  const [, port, named] = /^(\d+)-([a-z0-9]+)$/.exec(host.slice(0, -domain.length - 1)) ?? [];
  return named === undefined ? undefined : { id: named, port: Number(port) };
}

/** A signed address says nothing of its sandbox, so it is that of whose token it was signed with. */
function bySignature(request: Request, sandboxes: Sandboxes): KnownSandbox | undefined {
  const url = new URL(request.url);
  if (!url.pathname.endsWith("/files") || !url.searchParams.has("signature")) return undefined;
  const operation = signedOperation(request);
  return sandboxes.all().find(({ token }) => token !== undefined && isSigned(url, operation, token) !== false);
}

/** Whether a request may be for a sandbox: it has one of its tokens, or an address that was signed with one. */
function mayUse(request: Request, { token, trafficToken }: KnownSandbox): boolean {
  const { headers, url } = request;
  if (token === undefined || isSameSecret(token, headers.get("x-access-token"))) return true;
  if (isSameSecret(trafficToken, headers.get("e2b-traffic-access-token"))) return true;
  return isSigned(new URL(url), signedOperation(request), token) === true;
}

/** A request that has no body. */
function headOf(incoming: IncomingMessage): Request {
  return new Request(new URL(`http://localhost${incoming.url ?? "/"}`), { headers: standardHeaders(incoming) });
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
