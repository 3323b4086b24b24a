import { realpathSync } from "node:fs";
import { BackendUnavailableError } from "@fenced/core";
import { findPackage, nodeProgram, type NodeProgram } from "@fenced/core/runtime";

/** The name of this package. */
export const owner = "@fenced/executor-wasm";

/**
 * A file of this package or of one that interpreters need. None of them can be part of a bundle: processes of their own read them.
 *
 * @throws BackendUnavailableError if it is not installed.
 */
export function findInstalled(specifier: string): string {
  return findPackage(specifier, { url: import.meta.url, through: [owner] });
}

/**
 * Node itself, without links in its path.
 *
 * @throws BackendUnavailableError if this program is something else and there is no Node either.
 */
export function installedNode(): NodeProgram {
  const node = nodeProgram();
  if (node !== undefined) return { ...node, file: realpathSync(node.file) };
  throw new BackendUnavailableError("Interpreters run in processes of Node, which was not found", {
    remedy: "Install Node 20.19 or later in a directory of PATH.",
  });
}
