import { Command } from "commander";
import { diagnose } from "./diagnose.ts";
import { showDiagnosis } from "./show-diagnosis.ts";

/** `fenced doctor`. */
export function doctorCommand(signal: AbortSignal): Command {
  return new Command("doctor")
    .description(
      "Shows which fences work on this machine, and how to get the others. Exits with 0 if one works, otherwise with 1.",
    )
    .option("--json", "print the result as JSON", false)
    .option("--image <name>", "the image to look for in Docker and Podman; nothing is downloaded")
    .action(async ({ json, image }: { readonly json: boolean; readonly image?: string }) => {
      const diagnosis = await diagnose({ image, signal });
      process.stdout.write(json ? `${JSON.stringify(diagnosis, undefined, 2)}\n` : showDiagnosis(diagnosis));
      process.exitCode = diagnosis.strongest === null ? 1 : 0;
    });
}
