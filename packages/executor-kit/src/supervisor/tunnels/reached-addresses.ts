import { readFileSync } from "node:fs";
import { BackendUnavailableError } from "@fenced/core";
import { blockEnvironment } from "../../languages/command-languages.ts";
import type { OutputPiece } from "../../run/sink.ts";
import type { Supervisor } from "../supervisor.ts";

const reachProgram: string = readFileSync(new URL("./reach.py", import.meta.url), "utf8");

/** What is asked of a place in which no code has run yet. */
export interface ReachQuestion {
  /** The Python interpreter there. */
  readonly python: string;
  /** How long answers may take. */
  readonly seconds: number;
  /** `tcp ADDRESS PORT` or `dns ADDRESS PORT`. Empty: the API server and the name servers of the cluster that it is in. */
  readonly targets: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * Returns which addresses answer a place, to find out whether it is cut off from the network.
 *
 * @throws BackendUnavailableError if that cannot be found out; the signal's reason.
 */
export async function reachedAddresses(
  supervisor: Pick<Supervisor, "run">,
  { python, seconds, targets, signal }: ReachQuestion,
): Promise<string[]> {
  const argv = [python, "-I", "-c", reachProgram, String(seconds), ...targets];
  const said = { stdout: "", stderr: "" };
  const write = ({ type, data }: OutputPiece): undefined => void (said[type] += Buffer.from(data).toString());
  const { exitCode } = await supervisor.run({ argv, env: { ...blockEnvironment } }, { signal, write });
  signal.throwIfAborted();
  if (exitCode === 0) return said.stdout.split("\n").filter((line) => line !== "");
  throw new BackendUnavailableError(
    `Could not check whether the network is closed: ${said.stderr.trim().slice(-500)}`,
    {
      remedy: 'Use an image whose Python has the standard library, or set `network` to "open".',
    },
  );
}
