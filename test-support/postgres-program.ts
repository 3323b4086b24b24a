import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Where Debian has the programs of each version of PostgreSQL, since several can be installed. */
const versions = "/usr/lib/postgresql";

/** A program of the newest PostgreSQL of this machine; its bare name if there is none in Debian's place. */
export function postgresProgram(name: string): string {
  const installed = existsSync(versions) ? readdirSync(versions) : [];
  const newest = installed.toSorted((one, other) => Number(other) - Number(one));
  return newest.map((version) => join(versions, version, "bin", name)).find((path) => existsSync(path)) ?? name;
}
