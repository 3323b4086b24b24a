import { readFileSync } from "node:fs";

/** What the three kinds of shepherd share. Beside its program, as all that read one: the build finds no others. */
export const blockProcess: string = readFileSync(new URL("./block_process.py", import.meta.url), "utf8");
