import path from "node:path";
import { InvalidInputError } from "@fenced/core";
import { isPath } from "./container/container-options.ts";
import { clientOptions } from "./daemon/client-options.ts";
import type { DockerExecutorOptions } from "./docker-executor-options.ts";

/** Docker starts no container with less. */
const leastMemory = 6_291_456;

/** @throws InvalidInputError if the options make no sense, whatever the daemon. */
export function validateOptions(options: DockerExecutorOptions): void {
  const { docker, memoryBytes, cpus, pidsLimit, containerName, bindDir, workDir, reuse, initCommand } = options;
  if (docker !== undefined) clientOptions(docker);
  if (options.image === "") refuse("`image` is empty", "Name an image, or leave it out.");
  if (memoryBytes !== undefined && !(Number.isSafeInteger(memoryBytes) && memoryBytes >= leastMemory)) {
    refuse(`\`memoryBytes\` is ${memoryBytes}`, `Give a whole number of bytes, from ${leastMemory} (6 MiB).`);
  }
  if (cpus !== undefined && !(cpus > 0 && cpus < 1e6)) {
    refuse(`\`cpus\` is ${cpus}`, "Give a positive number, e.g. 1.5.");
  }
  if (pidsLimit !== undefined && !(Number.isSafeInteger(pidsLimit) && pidsLimit >= leastPids)) {
    refuse(`\`pidsLimit\` is ${pidsLimit}`, `Give a whole number, from ${leastPids}: the supervisor needs some.`);
  }
  if (containerName !== undefined && !/^[\w][\w.-]+$/.test(containerName)) {
    refuse(
      `\`containerName\` is ${JSON.stringify(containerName)}`,
      "Use letters, digits, `_`, `.` and `-`, two at least.",
    );
  }
  if (reuse === true && containerName === undefined) refuse("`reuse` needs a name", "Give `containerName` too.");
  if (bindDir !== undefined && workDir === undefined) {
    refuse("`bindDir` needs `workDir`", "Say which directory it is here.");
  }
  if (initCommand?.includes("\0") === true) refuse("`initCommand` contains a NUL character", "Remove it.");
  for (const [source, { bind }] of Object.entries(options.extraVolumes ?? {})) validateVolume(options, source, bind);
}

const leastPids = 8;

function validateVolume({ hardened }: DockerExecutorOptions, source: string, bind: string): void {
  if (!bind.startsWith("/")) refuse(`The volume "${source}" is mounted at "${bind}"`, "Give an absolute path.");
  if (hardened === false || !isPath(source) || !daemonSockets.has(path.posix.basename(source))) return;
  refuse(
    `The volume "${source}" is the socket of a container daemon: who has it, is root on the host`,
    "Leave it out, or set `hardened: false` if the code may do anything.",
  );
}

const daemonSockets: ReadonlySet<string> = new Set(["docker.sock", "podman.sock", "containerd.sock", "crio.sock"]);

function refuse(problem: string, remedy: string): never {
  throw new InvalidInputError(problem, { remedy });
}
