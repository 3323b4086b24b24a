import { join } from "node:path";
import { bundledCommand } from "@fenced/test-support/bundled-command";

const command = await bundledCommand(join(import.meta.dirname, "../fixtures/executor-host.ts"));

/** The command of a program that hosts an executor with this image. */
export function hostCommand(image: string): [string, ...string[]] {
  return [...command, image];
}
