import { execFileSync } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { mkdtemp, realpath, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished } from "vitest";

/**
 * A directory on a file system of its own that is removed when the test ends. Needs root.
 *
 * @param size - as `mount` takes it. Default: 256 KiB.
 */
export async function smallDisk(size = "256k"): Promise<string> {
  const directory = await mkdtemp(path.join(await realpath(tmpdir()), "fenced-test-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", directory]);
  onTestFinished(async () => {
    execFileSync("umount", [directory]);
    await rmdir(directory);
  });
  return directory;
}

/** Uses up the space, to the last byte. */
export function fill(directory: string): void {
  const descriptor = openSync(path.join(directory, "filler"), "w");
  try {
    expect(() => {
      for (;;) writeSync(descriptor, new Uint8Array(512));
    }).toThrow(/ENOSPC/);
  } finally {
    closeSync(descriptor);
  }
}
