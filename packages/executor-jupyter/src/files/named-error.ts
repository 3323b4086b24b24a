import { FileNotFoundError, InvalidInputError, WorkspacePathError, type FencedError } from "@fenced/core";

/** The same error about a path, with the path in it. */
export function namedError(error: FencedError, given: string): FencedError {
  const name = JSON.stringify(given);
  const options = { remedy: error.remedy, cause: error };
  if (WorkspacePathError.isInstance(error)) return new WorkspacePathError(`${name} is not in the workspace`, options);
  if (FileNotFoundError.isInstance(error)) return new FileNotFoundError(`There is no file ${name}`, options);
  if (InvalidInputError.isInstance(error)) return new InvalidInputError(`${name} is not a regular file`, options);
  return error;
}
