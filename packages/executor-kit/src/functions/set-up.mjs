/**
 * Creates the functions' package, installs what they need below it, imports it and returns its report. It runs in a
 * block, as CommonJS or as an ES module.
 *
 * @param {{
 *   module: string, source: string, files: Record<string, string>, packages: string[], directory: string, update: boolean,
 *   command?: { directory: string, name: string, text: string, runtime: { name: string, text: string } },
 *   owner: string, nonce: string, marker: string,
 * }} plan
 */
async function setUp(plan) {
  const { access, chmod, mkdir, readFile, rename, rm, rmdir, writeFile } = await import("node:fs/promises");
  const { spawnSync } = await import("node:child_process");
  const { builtinModules } = await import("node:module");
  const path = await import("node:path");
  const { pathToFileURL } = await import("node:url");
  /** @param {string} file */
  const exists = (file) =>
    access(file).then(
      () => true,
      () => false,
    );
  /**
   * Replaces a file as a whole, because a block may be importing it.
   *
   * @param {string} directory
   * @param {string} name
   * @param {string} text
   */
  const write = async (directory, name, text) => {
    await mkdir(directory, { recursive: true });
    const file = path.join(directory, name);
    await writeFile(`${file}~`, text);
    await rename(`${file}~`, file);
    return file;
  };
  /** @param {string} word */
  const quoted = (word) => `'${word.replaceAll("'", String.raw`'\''`)}'`;
  /** @param {Record<string, string>} fields */
  const report = (fields) => plan.nonce + JSON.stringify(fields);

  const place = path.join(plan.directory, "node_modules", plan.module);
  if (builtinModules.includes(plan.module)) return report({ failed: "name", reason: "Node has a module of that name" });
  const owner = await readFile(path.join(place, plan.marker), "utf8").catch(() => {});
  const update = plan.update && owner === plan.owner;
  if (owner === plan.owner && !update) await rm(place, { recursive: true });
  // An empty directory, such as a copy of a workspace may have, is nobody's package.
  if (!update) await rmdir(place).catch(() => {});
  const free = update || !(await exists(place));
  if (!free) return report({ failed: "name", reason: `there is already a package in ${place}` });
  await mkdir(place, { recursive: true });
  await writeFile(path.join(place, plan.marker), plan.owner);
  const entry = path.join(place, "index.js");
  const types = "index.d.ts" in plan.files ? { types: "./index.d.ts" } : {};
  const exported = { ...types, default: "./index.js" };
  const manifest = { name: plan.module, version: "0.0.0", private: true, type: "module", exports: exported };
  await write(place, "package.json", JSON.stringify(manifest));
  for (const [name, text] of Object.entries(plan.files)) await write(place, name, text);
  await write(place, "index.js", plan.source);
  if (plan.command) {
    const { directory, name, text, runtime } = plan.command;
    const program = await write(directory, runtime.name, runtime.text);
    const words = new Map([
      ["@INTERPRETER@", process.execPath],
      ["@RUNTIME@", program],
    ]);
    const script = text.replaceAll(/@[A-Z]+@/g, (word) => quoted(words.get(word) ?? word));
    await chmod(await write(directory, name, script), 0o755);
  }
  if (plan.packages.length > 0 && !update) {
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
    return report({ failed: "module", reason: error instanceof Error ? String(error.stack) : String(error) });
  }
  return report({});
}

void setUp;
