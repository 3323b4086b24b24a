import { FencedError, InvalidInputError } from "@fenced/core";
import { isSameSecret } from "@fenced/core/runtime";
import type { KnownSandbox } from "../control/known-sandbox.ts";
import { ConnectError } from "../envd/connect-error.ts";

/** Why a request gets nothing from a port of a sandbox, in E2B's form. */
export interface PortRefusal {
  readonly sandboxId: string;
  readonly message: string;
  readonly code: 403 | 502;
  readonly port?: number;
}

/** Clients take this status for the end of a sandbox, or of a program in it. */
export function unreachable(sandboxId: string, message: string, port?: number): PortRefusal {
  return { sandboxId, message, code: 502, ...(port !== undefined && { port }) };
}

/** Says whether a client may use the ports of a sandbox at which its programs listen. */
export function trafficRefusal(
  { settings: { id, allowPublicTraffic }, trafficToken }: KnownSandbox,
  token: string | null,
): PortRefusal | undefined {
  if (allowPublicTraffic || isSameSecret(trafficToken, token)) return undefined;
  const message = "The sandbox allows no public traffic: the header e2b-traffic-access-token is missing or wrong";
  return { sandboxId: id, message, code: 403 };
}

/** What a client is told of an error while a port was connected to. */
export function connectionRefusal(sandboxId: string, port: number, error: unknown): PortRefusal {
  if (error instanceof ConnectError || InvalidInputError.isInstance(error)) {
    return unreachable(sandboxId, error.message, port);
  }
  if (FencedError.isInstance(error)) {
    return unreachable(sandboxId, "The sandbox cannot be reached, or has too many connections", port);
  }
  return unreachable(
    sandboxId,
    "The sandbox is running but the port is not open, or the program closed the connection",
    port,
  );
}
