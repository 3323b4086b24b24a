import { BackendUnavailableError, type CodeExecutor } from "@fenced/core";

/** A switch that breaks an executor's backend. */
export interface Breaking {
  /** `once`: the next run fails, later ones work; `for good`: nothing works any more. */
  broken: "no" | "once" | "for good";
}

/** The same executor, with a backend that can break down. */
export function breakable(executor: CodeExecutor, breaking: Breaking): CodeExecutor {
  const gone = async (): Promise<never> => {
    if (breaking.broken === "once") breaking.broken = "no";
    throw new BackendUnavailableError("The backend is gone", { remedy: "Begin another one." });
  };
  const get = (target: object, name: string | symbol) => {
    if (breaking.broken !== "no" && name === "executeCodeBlocks") return gone;
    if (breaking.broken === "for good" && name === "list") return gone;
    const value: unknown = Reflect.get(target, name, target);
    if (typeof value === "function") return (...args: unknown[]): unknown => Reflect.apply(value, target, args);
    return name === "files" && typeof value === "object" && value !== null ? new Proxy(value, { get }) : value;
  };
  return new Proxy<CodeExecutor>(executor, { get });
}
