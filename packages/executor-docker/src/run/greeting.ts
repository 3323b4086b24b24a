import { BackendUnavailableError } from "@fenced/core";
import type { ContainerInventory } from "./block-runner.ts";

/** What runs in a container says about it. */
export interface Greeting {
  readonly inventory: ContainerInventory;
  /** The process that holds a container without a supervisor. */
  readonly keeper: number;
  /** The name of the socket in the work directory at which the supervisor listens, if it does. */
  readonly socket?: string;
}

/**
 * Reads a greeting: lines of a name and a value.
 *
 * @throws BackendUnavailableError if the container is not usable.
 */
export function readGreeting(text: string): Greeting {
  const lines = text.split("\n").map((line) => line.split(" "));
  const value = (name: string): string | undefined =>
    lines
      .find(([first]) => first === name)
      ?.slice(1)
      .join(" ");
  const problem = value("problem");
  if (problem !== undefined) {
    throw new BackendUnavailableError(`The container has no place for temporary files: ${problem}`, {
      remedy: "Use an image in which /tmp can be written to, or set `readOnlyRootFilesystem`, which puts it in memory.",
    });
  }
  const programs = lines.flatMap(([first, name = "", ...place]): [string, string][] =>
    // BusyBox has programs without a place, and names them alone.
    first === "program" && (place[0]?.startsWith("/") === true || place[0] === name) ? [[name, place.join(" ")]] : [],
  );
  const [nodeVersion, probe] = [value("node"), value("probe")];
  const inventory = {
    programs: new Map(programs),
    owner: { uid: Number(value("uid")), gid: Number(value("gid")) },
    ...(nodeVersion === undefined ? {} : { nodeVersion }),
    ...(probe === undefined ? {} : { probe }),
  };
  const socket = value("socket");
  return { inventory, keeper: Number(value("self")), ...(socket === undefined ? {} : { socket }) };
}
