import { readFileSync } from "node:fs";

const wheels: string = readFileSync(new URL("./guest/wheels.py", import.meta.url), "utf8");
const choose: string = readFileSync(new URL("./guest/choose.py", import.meta.url), "utf8");

/** Makes an image of the programs that install packages, and of what they need. */
export const toolsProgram: string = readFileSync(new URL("./guest/tools.py", import.meta.url), "utf8");

/** Chooses and unpacks wheels, with that image. */
export const installProgram: string = readFileSync(new URL("./guest/install.py", import.meta.url), "utf8");

/** The files that `toolsProgram` makes an image of; `packaging` is as its authors published it. */
export function toolFiles(): ReadonlyMap<string, Uint8Array> {
  const packaging = readFileSync(new URL("../../vendor/packaging-26.3-py3-none-any.whl", import.meta.url));
  return new Map<string, Uint8Array>([
    ["wheels.py", Buffer.from(wheels)],
    ["choose.py", Buffer.from(choose)],
    ["packaging.whl", packaging],
  ]);
}

/** Changes with the programs. */
export const programs: readonly string[] = [wheels, choose, toolsProgram, installProgram];
