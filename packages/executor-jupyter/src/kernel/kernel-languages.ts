import type { ExecutorCapabilities } from "@fenced/core";

/** What a kernel of this language runs; a Python kernel also has shells, and functions of both kinds. */
export function kernelLanguages(
  language: string,
  shells: readonly string[],
): Pick<ExecutorCapabilities, "languages" | "functions" | "hostFunctions"> {
  if (language !== "python") return { languages: [language], functions: [], hostFunctions: [] };
  const languages = [language, ...shells];
  return { languages, functions: ["python"], hostFunctions: languages };
}
