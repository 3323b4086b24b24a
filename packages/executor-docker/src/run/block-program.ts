import {
  blockEnvironment,
  type BlockRun,
  type FunctionPlaces,
  functionVariables,
  type LanguageCommand,
} from "@fenced/executor-kit";

/** Where functions are stored. */
type Places = Omit<FunctionPlaces, "owner">;

/** The variable that all blocks of an executor have. */
export const sessionMark = "FENCED_SESSION";

/** The command that runs a block's file: the language's command, after `initCommand` in the same shell. */
export function blockCommand({ command }: LanguageCommand, file: string, initCommand: string | undefined): string[] {
  return commandAfterInit([...command, file], initCommand);
}

/** A command after `initCommand` in the same shell. */
export function commandAfterInit(words: readonly string[], initCommand: string | undefined): string[] {
  return initCommand === undefined ? [...words] : ["sh", "-c", `{ ${initCommand}\n} && exec "$@"`, "fenced", ...words];
}

/** The variables of a block; the caller's override those that tell programs where the proxy is. */
export function blockVariables(
  { env, hostCalls }: Pick<BlockRun, "env" | "hostCalls">,
  { id, functions }: { readonly id: string; readonly functions: readonly unknown[] },
  { network, places }: { readonly network: Readonly<Record<string, string>>; readonly places: Places },
): Record<string, string> {
  const hasFunctions = functions.length > 0 || hostCalls !== undefined;
  return {
    ...blockEnvironment,
    ...network,
    ...env,
    ...(hasFunctions ? functionVariables(places, hostCalls, env, ":") : {}),
    [sessionMark]: id,
  };
}
