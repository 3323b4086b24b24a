import type { SessionDirectories } from "@fenced/executor-kit";
import type { RunningContainer } from "./running-container.ts";

const probeQuestion = `fenced-${process.pid}-${Math.random()}`;

/** Writes a file into the work directory that tells whether a container mounts the same directory; returns its name. */
export function writeProbe(directories: SessionDirectories): string {
  return directories.writeOwn(probeQuestion, "probe");
}

/** The name of the socket that a supervisor creates next to its probe file. */
export function socketOf(probe: string): string {
  return `${probe}.sock`;
}

/** Removes the probe file, and the socket that the supervisor creates next to it. */
export async function removeProbe(directories: SessionDirectories, probe: string): Promise<void> {
  await directories.removeOwn(probe);
  await directories.removeOwn(socketOf(probe));
}

/** True if the container saw the probe file, and this process sees what the container added to it. */
export async function isSame(
  directories: SessionDirectories,
  probe: string,
  container: RunningContainer,
): Promise<boolean> {
  return container.inventory.probe === probeQuestion && (await directories.readOwn(probe)) === `${probeQuestion}r`;
}
