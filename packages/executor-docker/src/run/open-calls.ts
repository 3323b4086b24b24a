import type { Duplex } from "node:stream";
import { FunctionSetupError } from "@fenced/core";
import type { BlockRunner } from "./exec-runner.ts";

/**
 * Lets programs in a container call host functions through its supervisor.
 *
 * @throws FunctionSetupError if it has no supervisor.
 */
export async function openCalls(runner: BlockRunner, accept: (connection: Duplex) => void): Promise<string> {
  if (runner.openCalls) return runner.openCalls(accept);
  throw new FunctionSetupError("Host functions need Python in the container, and this one has none", {
    remedy: "Use an image that has Python 3.8 or later, or leave the host functions out.",
  });
}
