import { execFile } from "node:child_process";
import { copyFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { promisify } from "node:util";

const run = promisify(execFile);
const require = createRequire(import.meta.url);
const injector = require.resolve("postject/dist/cli.js");
/** What marks the place in Node's program that says whether it is an application: Node's documentation gives it. */
const fuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

/**
 * Makes a single executable application of the Node that runs this, as Node's documentation says. Linux only: elsewhere, it must be
 * signed.
 *
 * @param main - a bundle in CommonJS.
 * @param file - where to put the application. Two more files are put beside it.
 */
export async function makeSingleExecutable(main: string, file: string): Promise<void> {
  const settings = { main, output: `${file}.blob`, disableExperimentalSEAWarning: true };
  await writeFile(`${file}.json`, JSON.stringify(settings));
  await run(process.execPath, ["--experimental-sea-config", `${file}.json`]);
  await copyFile(process.execPath, file);
  await run(process.execPath, [injector, file, "NODE_SEA_BLOB", settings.output, "--sentinel-fuse", fuse]);
}
