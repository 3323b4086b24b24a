import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { blockPrograms, type PythonPrograms } from "../child/child-program.ts";

const wheels: string = readFileSync(new URL("./guest/wheels.py", import.meta.url), "utf8");
const choose: string = readFileSync(new URL("./guest/choose.py", import.meta.url), "utf8");

/** Chooses and unpacks wheels, in an interpreter that has loaded `installerPrograms`. */
export const installProgram: string = readFileSync(new URL("./guest/install.py", import.meta.url), "utf8");

/** What that interpreter has loaded; the wheel, `packaging`, is unmodified. */
export const installerPrograms: PythonPrograms = {
  modules: { ...blockPrograms.modules, wheels, choose },
  wheel: fileURLToPath(new URL("../../vendor/packaging-26.3-py3-none-any.whl", import.meta.url)),
};

/** All programs; part of the name of an image, so that it changes with them. */
export const programs: readonly string[] = [wheels, choose, installProgram];
