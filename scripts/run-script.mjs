#!/usr/bin/env node
/**
 * What turbo calls instead of pnpm, as `pnpm run SCRIPT [ARGUMENTS]`, for each of its tasks. To look up a line of package.json, pnpm
 * takes ten times as much processor time. `scripts/tasks.mjs` puts it on turbo's PATH.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { root, stopTogether } from "./workspace.mjs";

const [command, script = "", ...words] = process.argv.slice(2);
if (command !== "run") throw new Error(`Only scripts can be run here, not \`pnpm ${command}\`.`);
const folder = process.cwd();
const { scripts } = /** @type {{ scripts: Readonly<Record<string, string>> }} */ (
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
);
const line = scripts[script];
if (line === undefined) throw new Error(`${join(folder, "package.json")} has no script "${script}".`);

const own = resolve(process.argv[1] ?? "", "..");
const folders = (process.env.PATH ?? "").split(delimiter).filter((each) => each !== own);
// Without the folder of the link to this file, so that a script that calls pnpm gets the real one.
const path = [join(folder, "node_modules", ".bin"), join(root, "node_modules", ".bin"), ...folders].join(delimiter);
const given = words.filter((word) => word !== "--");
const child = spawn("sh", ["-c", given.length > 0 ? `${line} "$@"` : line, script, ...given], {
  stdio: "inherit",
  env: { ...process.env, PATH: path, INIT_CWD: folder, npm_lifecycle_event: script },
});
stopTogether(child);
child.once("exit", (code, signal) => {
  process.exitCode = code ?? (signal === "SIGINT" ? 130 : 143);
});
