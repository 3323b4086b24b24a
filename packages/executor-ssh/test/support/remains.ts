import { readdir, readFile } from "node:fs/promises";
import type { SshServer } from "@fenced/test-support/ssh-server";

/** What executors keep on the other side of a server: their directories, and processes that came in through it. */
export async function remains(server: SshServer): Promise<string[]> {
  const directories = await readdir(server.temporary);
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = processes.map(async (pid) => {
    const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
    return `\0${environment}`.includes(`\0TMPDIR=${server.temporary}\0`) ? [`process ${pid}`] : [];
  });
  return [...directories, ...(await Promise.all(found)).flat()];
}
