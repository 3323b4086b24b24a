/**
 * Programs that run in a container, a kernel or on another host are separate files (`.py`, `.sh`, `.mjs`, `.cjs`) beside the module
 * that uses them. Sources read them:
 *
 *     export const supervisorProgram: string = readFileSync(new URL("./supervisor.py", import.meta.url), "utf8");
 *
 * The build replaces exactly this expression with a literal, so that packages also work when bundled.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** How sources read a program. */
export const reading = /readFileSync\(\s*new URL\("(\.\/[^"]+)", import\.meta\.url\),\s*"utf8",?\s*\)/g;
/** A read that was not inlined. Its file is not in the package. */
const leftOver = /readFileSync\(\s*new URL\("(?:\.\/|\.\.\/[^"]*\.(?:py|sh|mjs|cjs)")[^)]*\)/;
/** The literal of an earlier run: the compiler does not rewrite the module when only the program has changed. */
const inlined = /\/\* (\.\/\S+) \*\/ "(?:[^"\\]|\\.)*"/g;
const unusedImport = /^import \{ readFileSync \} from "node:fs";\n/m;

/**
 * Replaces the reading of programs with their text in a built package.
 *
 * @param {string} folder
 */
export function inlinePrograms(folder) {
  for (const file of modulesBelow(join(folder, "dist"))) {
    const built = readFileSync(join(folder, "dist", file), "utf8");
    const place = join(folder, "src", dirname(file));
    /** @type {(match: string, program: string) => string} */
    const literal = (_match, program) =>
      `/* ${program} */ ${JSON.stringify(readFileSync(join(place, program), "utf8"))}`;
    let text = built.replace(inlined, literal).replace(reading, literal);
    const [missed] = leftOver.exec(text) ?? [];
    if (missed !== undefined) throw new Error(`${file} reads a file that is not part of the package: ${missed}`);
    if (text === built) continue;
    if (text.split("readFileSync").length === 2) text = text.replace(unusedImport, "\n");
    writeFileSync(join(folder, "dist", file), text);
  }
}

/** @param {string} folder */
function modulesBelow(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".js"));
}
