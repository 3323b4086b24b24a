/**
 * Kinds of machine on which every documented command must work: one with a daemon of Docker, one with only bubblewrap,
 * and one with only Node. This machine becomes one of them by what programs can find.
 */
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { BackendName } from "./backends.ts";

/** A kind of machine, and the strongest fence that it has. */
export type MachineKind = "docker" | "os-sandbox" | "wasm";

/** All kinds, each with the backends that this machine needs to become one. */
export const machineKinds: Readonly<Record<MachineKind, readonly BackendName[]>> = {
  docker: ["docker", "bubblewrap", "python3"],
  "os-sandbox": ["bubblewrap", "python3"],
  wasm: [],
};

/** Nobody listens on that port. */
const noDaemon = { DOCKER_HOST: "tcp://127.0.0.1:9" };

/** The variables with which a program finds what a machine of this kind has, until the test ends. */
export async function machine(kind: MachineKind): Promise<Readonly<Record<string, string>>> {
  if (kind === "docker") return {};
  if (kind === "os-sandbox") return noDaemon;
  return { ...noDaemon, PATH: await pathWith({ node: process.execPath }) };
}

/** A `PATH` with only these programs, by name, until the test ends. */
export async function pathWith(programs: Readonly<Record<string, string>>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-path-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const [name, file] of Object.entries(programs)) await symlink(file, join(directory, name));
  return directory;
}
