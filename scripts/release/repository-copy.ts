import { spawnSync } from "node:child_process";
import { copyWorkingTree } from "../packages.mjs";
import { pnpmCommand, withoutUrls } from "../workspace.mjs";

const committer = ["-c", "user.name=Fenced", "-c", "user.email=fenced@localhost", "-c", "commit.gpgsign=false"];

/**
 * Copies the working tree into a folder and commits it there as the
 * branch main. Changesets asks git for the commits that added its files, and finds them there even if the checkout is shallow.
 */
export function copyRepository(folder: string): void {
  copyWorkingTree(folder);
  runIn(folder, "git", ["init", "--quiet", "--initial-branch=main"]);
  runIn(folder, "git", ["add", "--all"]);
  runIn(folder, "git", [...committer, "commit", "--quiet", "--message=Copy of the working tree"]);
}

/** Runs a program in a folder, `pnpm` in the version that package.json names, and throws its output if it fails. */
export function runIn(folder: string, program: string, args: readonly string[]): string {
  const [command, ...first] = program === "pnpm" ? pnpmCommand() : [program];
  const { status, stdout, stderr, error } = spawnSync(command, [...first, ...args], {
    cwd: folder,
    encoding: "utf8",
    shell: process.platform === "win32" && program !== process.execPath,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status === 0) return stdout;
  const output = error === undefined ? `${stdout}${stderr}` : error.message;
  throw new Error(`${program} ${args.join(" ")} failed.\n${withoutUrls(output)}`);
}
