import type { Diagnosis } from "./diagnose.ts";

/** A diagnosis as text for a terminal. */
export function showDiagnosis({ strongest, fences, tools }: Diagnosis): string {
  const fenceRows = fences.map(({ name, works, isolation }) => [name, isolation, works ? "works" : "does not work"]);
  const problems = fences.flatMap(({ name, problem, remedy }) =>
    problem === undefined ? [] : [`${name}: ${problem} ${remedy ?? ""}`.trimEnd()],
  );
  const toolRows = tools.map(({ name, found, gives, install }) => [name, found ?? "missing", gives, install ?? ""]);
  const verdict =
    strongest === null
      ? "No fence works on this machine yet. Fenced never runs code without one unless you ask it to."
      : `The strongest fence here: ${strongest}. openExecutor("auto") and \`fenced run\` open it.`;
  const parts = [
    table([["FENCE", "ISOLATION", "HERE"], ...fenceRows]),
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
