import { connect, type OnReadOpts, type Socket, type TcpSocketConnectOpts } from "node:net";
import { joinSignals } from "@fenced/core/abort";
import { errorCode, Refusal } from "./refusal.ts";

/** How to connect. */
export interface DialOptions {
  /** What the host is called in a refusal. */
  readonly called: string;
  readonly signal: AbortSignal;
  readonly onread?: OnReadOpts | undefined;
}

/**
 * Tries addresses one after another, each for its share of the time.
 *
 * @throws Refusal
 */
export async function dialFirst(
  addresses: readonly string[],
  port: number,
  { called, signal, onread }: DialOptions,
): Promise<Socket> {
  let failure: unknown;
  for (const [index, address] of addresses.entries()) {
    const last = index === addresses.length - 1;
    const patience = last ? signal : joinSignals(signal, AbortSignal.timeout(firstPatienceMs));
    try {
      return await dial({ host: address, port, ...(onread && { onread }) }, patience);
    } catch (error) {
      failure = error;
      if (signal.aborted) break;
    }
  }
  if (signal.aborted) throw new Refusal(504, `${called} could not be reached: timed out`);
  throw new Refusal(502, `${called} could not be reached: ${errorCode(failure)}`);
}

const firstPatienceMs = 2500;

function dial(to: TcpSocketConnectOpts, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = connect({ ...to, allowHalfOpen: true, noDelay: true });
    const abort = (): void => void socket.destroy(new Error("the connection took too long"));
    signal.addEventListener("abort", abort, { once: true });
    socket.once("error", reject);
    socket.once("close", () => signal.removeEventListener("abort", abort));
    socket.once("connect", () => {
      signal.removeEventListener("abort", abort);
      socket.off("error", reject);
      // Needed until another listener is added: an error without a listener ends the program.
      socket.on("error", () => {});
      resolve(socket);
    });
  });
}
