import { readdir, readFile } from "node:fs/promises";

/** The command lines of this host's processes that contain a word. */
export async function commandsWith(word: string): Promise<string[]> {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const commands = processes.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => ""));
  return (await Promise.all(commands))
    .map((each) => each.replaceAll("\0", " ").trim())
    .filter((each) => each.includes(word));
}
