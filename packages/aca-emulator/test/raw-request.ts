import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { AcaEmulator } from "../src/index.ts";

/** A connection to the emulator, for requests that `fetch` would not send. */
export function connectTo(emulator: AcaEmulator): Socket {
  const { hostname, port } = new URL(emulator.endpoint);
  return connect(Number(port), hostname);
}

/** Sends `request` unchanged, which must ask to close the connection; resolves to everything received until then. */
export async function exchange(emulator: AcaEmulator, request: string): Promise<string> {
  const socket = connectTo(emulator);
  socket.write(request);
  return text(socket);
}
