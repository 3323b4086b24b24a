import { InvalidInputError } from "@fenced/core";

/** The error for something in the workspace that a checkpoint cannot replace. */
export function inTheWay(path: string, kind: "directory" | "file"): InvalidInputError {
  const [there, wanted] = kind === "directory" ? ["a directory", "a file"] : ["a file", "a directory"];
  return new InvalidInputError(
    `${JSON.stringify(path)} is ${there} in the workspace, and ${wanted} in the checkpoint; nothing was restored`,
    { remedy: "Remove it, or restore to an empty workspace." },
  );
}
