import type { SessionDirectory } from "../../src/index.ts";

/** A directory that does some things in another way. */
export function directoryAround(directory: SessionDirectory, changes: Partial<SessionDirectory>): SessionDirectory {
  return {
    acquire: (...given) => directory.acquire(...given),
    renew: (...given) => directory.renew(...given),
    update: (...given) => directory.update(...given),
    release: (...given) => directory.release(...given),
    listen: (...given) => directory.listen(...given),
    ...changes,
  };
}
