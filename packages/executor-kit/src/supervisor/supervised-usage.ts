import type { ExecutorCapabilities } from "@fenced/core";
import { programFigures } from "./blocks/program-usage.ts";
import { trafficFigures } from "./tunnels/session-network.ts";

/**
 * What an executor whose places have a supervisor offers to know of its blocks' use; see `ExecutorCapabilities.usage`.
 *
 * @param stateful - Python blocks run in an interpreter that lives on: the memory that it used at most is not that of a block.
 * @param network - what blocks can connect to; a list of hosts is enforced by a proxy, which counts.
 */
export function supervisedUsage({
  stateful,
  network,
}: Partial<Pick<ExecutorCapabilities, "stateful" | "network">>): Pick<ExecutorCapabilities, "usage"> {
  const ofPrograms = programFigures.filter((figure) => stateful !== true || figure !== "peakMemoryBytes");
  return { usage: [...ofPrograms, ...(typeof network === "object" ? trafficFigures : [])] };
}
