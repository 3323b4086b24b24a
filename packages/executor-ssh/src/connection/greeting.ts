import { BackendUnavailableError } from "@fenced/core";
import type { PlaceInventory } from "@fenced/executor-kit";

/** What the supervisor on the remote host reports when it is ready. */
export interface Greeting {
  /** The session's directory there. */
  readonly directory: string;
  /** The work directory there, without symbolic links. */
  readonly workspace: string;
  /** The paths of the programs that start a block there. */
  readonly setsid: string;
  readonly shell: string;
  /** The `PATH` of programs there. */
  readonly path: string;
  readonly inventory: PlaceInventory;
}

/**
 * Parses a greeting: lines of a name and a value.
 *
 * @throws BackendUnavailableError if the host cannot be used.
 */
export function readGreeting(text: string, host: string): Greeting {
  const fields = text.split("\n").map((line) => /^(\w+) (.*)$/.exec(line) ?? []);
  const valueOf = (name: string): string | undefined => fields.find(([, each]) => each === name)?.[2];
  const problem = valueOf("problem");
  if (problem !== undefined) {
    throw new BackendUnavailableError(`The host ${host} cannot run blocks: ${problem}`, {
      remedy: "Fix this on the host, set `workDir` to a writable directory, or use another host.",
    });
  }
  const programs = fields.flatMap(([, name, value = ""]): [string, string][] => {
    const [program = "", ...place] = value.split(" ");
    return name === "program" ? [[program, place.join(" ")]] : [];
  });
  const nodeVersion = valueOf("node");
  return {
    directory: valueOf("dir") ?? "",
    workspace: valueOf("workspace") ?? "",
    setsid: valueOf("setsid") ?? "",
    shell: valueOf("shell") ?? "",
    path: valueOf("path") ?? "",
    inventory: { programs: new Map(programs), ...(nodeVersion === undefined ? {} : { nodeVersion }) },
  };
}
