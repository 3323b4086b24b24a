import { Command } from "commander";
import { diagnose } from "./diagnose.ts";
import { showDiagnosis } from "./show-diagnosis.ts";

/** `fenced doctor`. */
export function doctorCommand(signal: AbortSignal): Command {
  return new Command("doctor")
    .description(
      "Shows which fences this machine has, and how to get the others. The exit code is 0 if there is one, otherwise 1.",
    )
    .option("--json", "print it as JSON", false)
    .option("--image <name>", "the image for Docker and Podman; nothing is downloaded")
    .action(async ({ json, image }: { readonly json: boolean; readonly image?: string }) => {
      const diagnosis = await diagnose({ image, signal });
      process.stdout.write(json ? `${JSON.stringify(diagnosis, undefined, 2)}\n` : showDiagnosis(diagnosis));
      process.exitCode = diagnosis.strongest === null ? 1 : 0;
    });
}
