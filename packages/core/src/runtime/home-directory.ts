import { homedir } from "node:os";

/** Where no file is: Debian gives it to users who have no home. */
const none = "/nonexistent";

/**
 * The user's home directory. A program whose user has no name, as in a container that was started with `--user 1234`, may
 * have none: then a path at which there is nothing, so that looking for a file there finds none.
 */
export function homeDirectory(): string {
  try {
    return homedir();
  } catch {
    return none;
  }
}
