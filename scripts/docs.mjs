/**
 * `build`: builds the site in apps/site/.vitepress/dist and checks its links. `build --guides`: the same without the API reference,
 * in a third of the time. `dev`: shows the site while you write.
 */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { ensureInstalled, helpIfAsked, root, runAndExit, userArguments } from "./workspace.mjs";

helpIfAsked();
const [command = "build", ...args] = userArguments();
const site = join(root, "apps/site");
const vitepress = "apps/site/node_modules/vitepress/bin/vitepress.js";

const guides = args[0] === "--guides";

ensureInstalled();
if (guides) rmSync(join(site, "api"), { recursive: true, force: true });
else run("src/generate-api.ts");
if (command === "dev") {
  runAndExit(vitepress, ["dev", ...args], site);
} else {
  runNode([join(root, vitepress), "build", ...args.slice(Number(guides))]);
  run("src/check-links.ts");
}

/** @param {string} script - A TypeScript file of the site. */
function run(script) {
  runNode(["--import", "tsx", join(site, script)]);
}

/** @param {readonly string[]} nodeArguments */
function runNode(nodeArguments) {
  const { status } = spawnSync(process.execPath, nodeArguments, { cwd: site, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
