import { inOwnWords } from "@fenced/core";
import { Command } from "commander";
import { diagnose, type Diagnosis } from "./diagnose.ts";
import { ownNames } from "./own-names.ts";

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

/** A diagnosis as text for a terminal. */
function showDiagnosis({ strongest, fences, tools }: Diagnosis): string {
  const fenceRows = fences.map(({ name, works, isolation, kernel }) => [
    name,
    isolation,
    kernel ?? "-",
    works ? "works" : "does not work",
  ]);
  const problems = fences.flatMap(({ name, problem, remedy }) =>
    problem === undefined ? [] : [inOwnWords({ message: `${name}: ${problem} ${remedy ?? ""}`.trimEnd() }, ownNames)],
  );
  const toolRows = tools.map(({ name, found, gives, install }) => [name, found ?? "missing", gives, install ?? ""]);
  const verdict =
    strongest === null
      ? "No fence works on this machine yet. Fenced never runs code without one unless you ask it to."
      : `The strongest fence here: ${strongest}. openExecutor("auto") and \`fenced run\` open it.`;
  const parts = [
    table([["FENCE", "ISOLATION", "KERNEL", "HERE"], ...fenceRows]),
    problems.join("\n"),
    table([["TOOL", "HERE", "ISOLATION IT GIVES", "INSTALL WITH"], ...toolRows]),
    verdict,
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

/** A table with columns as wide as their widest cell. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}
