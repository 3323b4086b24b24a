import { InvalidInputError } from "@fenced/core";
import { normalizeWorkspacePath } from "@fenced/executor-kit";

/**
 * The normal form of a file's path in the workspace.
 *
 * @throws WorkspacePathError if it leads out of it, InvalidInputError for the workspace itself.
 */
export function fileIn(file: string): string {
  const normal = normalizeWorkspacePath(file);
  if (normal !== ".") return normal;
  throw new InvalidInputError(`${JSON.stringify(file)} is a directory`, { remedy: "Name a file." });
}
