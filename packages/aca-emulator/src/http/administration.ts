import type { IncomingMessage } from "node:http";
import { readJson, unknownOperation, type Answer } from "./api-request.ts";
import { parseFaults } from "./parse-faults.ts";
import type { Emulation } from "./request-handler.ts";

/**
 * The emulator's own calls, which the service does not have: for tests in other processes and languages.
 * `GET /.emulator/sessions` lists the identifiers that have a session, `PUT /.emulator/faults` takes a list of faults.
 */
export async function handleAdministration(
  { pool, faults }: Pick<Emulation, "pool" | "faults">,
  path: string,
  message: IncomingMessage,
): Promise<Answer> {
  const operation = `${message.method ?? "GET"} ${path}`;
  if (operation === "GET /.emulator/sessions") return { status: 200, body: { value: pool.sessions.identifiers } };
  if (operation === "PUT /.emulator/faults") {
    faults.replace(parseFaults(await readJson(message)));
    return { status: 204 };
  }
  throw unknownOperation({ method: message.method ?? "GET", path: path.split("/") });
}
