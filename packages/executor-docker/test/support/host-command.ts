import { join } from "node:path";

/** The command of a program that hosts an executor with this image. */
export function hostCommand(image: string): [string, ...string[]] {
  const fixture = join(import.meta.dirname, "../fixtures/executor-host.ts");
  return [process.execPath, "--import", "tsx", "--conditions=@fenced/source", fixture, image];
}
