import type { SetupPlan } from "./function-setup.ts";

/** The file that names the executor that made a package directory in `node_modules`. */
export const functionsPackageMarker = ".fenced-functions";

/**
 * A JavaScript program that makes the functions' package, installs what they need below it, imports it and reports.
 * It runs as a block and is valid both as CommonJS and as an ES module.
 */
export function javaScriptSetupProgram(plan: SetupPlan): string {
  const literals: Readonly<Record<string, string>> = {
    PLAN: JSON.stringify(plan),
    MARKER: JSON.stringify(functionsPackageMarker),
  };
  return program.replaceAll(/\b(?:PLAN|MARKER)\b/g, (name) => literals[name] ?? name);
}

const program = String.raw`
(async () => {
  const { access, mkdir, readFile, rm, writeFile } = await import("node:fs/promises");
  const { spawnSync } = await import("node:child_process");
  const { builtinModules } = await import("node:module");
  const path = await import("node:path");
  const { pathToFileURL } = await import("node:url");
  const plan = PLAN;
  const exists = (file) => access(file).then(() => true, () => false);
  const report = (fields) => console.log(plan.nonce + JSON.stringify(fields));

  const place = path.join(plan.directory, "node_modules", plan.module);
  if (builtinModules.includes(plan.module)) return report({ failed: "name", reason: "it is a module of Node itself" });
  const owner = await readFile(path.join(place, MARKER), "utf8").catch(() => undefined);
  if (owner === plan.owner) await rm(place, { recursive: true });
  if (await exists(place)) return report({ failed: "name", reason: "there is already a package in " + place });
  await mkdir(place, { recursive: true });
  await writeFile(path.join(place, MARKER), plan.owner);
  const entry = path.join(place, "index.js");
  const manifest = { name: plan.module, version: "0.0.0", private: true, type: "module", exports: "./index.js" };
  await writeFile(path.join(place, "package.json"), JSON.stringify(manifest));
  await writeFile(entry, plan.source);
  if (plan.packages.length > 0) {
    const words = ["install", "--no-save", "--no-audit", "--no-fund", "--prefix", place, "--", ...plan.packages];
    const done = spawnSync("npm", words, { encoding: "utf8", shell: process.platform === "win32" });
    if (done.status !== 0) {
      const reason = done.error ? String(done.error) : done.stderr + done.stdout;
      return report({ failed: "packages", packages: plan.packages.join(", "), reason });
    }
  }
  try {
    await import(pathToFileURL(entry).href);
  } catch (error) {
    return report({ failed: "module", reason: String((error && error.stack) || error) });
  }
  report({});
})();
`;
