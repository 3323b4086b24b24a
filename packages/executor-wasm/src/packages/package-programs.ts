import { readFileSync } from "node:fs";

const wheels: string = readFileSync(new URL("./guest/wheels.py", import.meta.url), "utf8");
const choose: string = readFileSync(new URL("./guest/choose.py", import.meta.url), "utf8");

/** Creates an image of the programs that install packages and their dependencies. */
export const toolsProgram: string = readFileSync(new URL("./guest/tools.py", import.meta.url), "utf8");

/** Chooses and unpacks wheels, using that image. */
export const installProgram: string = readFileSync(new URL("./guest/install.py", import.meta.url), "utf8");

/** The files from which `toolsProgram` creates an image; `packaging` is unmodified. */
export function toolFiles(): ReadonlyMap<string, Uint8Array> {
  const packaging = readFileSync(new URL("../../vendor/packaging-26.3-py3-none-any.whl", import.meta.url));
  return new Map<string, Uint8Array>([
    ["wheels.py", Buffer.from(wheels)],
    ["choose.py", Buffer.from(choose)],
    ["packaging.whl", packaging],
  ]);
}

/** All programs; part of the name of an image, so that it changes with them. */
export const programs: readonly string[] = [wheels, choose, toolsProgram, installProgram];
