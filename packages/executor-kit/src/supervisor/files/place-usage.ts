import type { ExecutorUsage } from "@fenced/core";

/** Reads what `usage.py` says of its place. */
export function placeUsage(answer: string): Omit<ExecutorUsage, "diskBytes"> {
  const found = new Map<string, number>();
  for (const [, name = "", value = ""] of answer.matchAll(/^([a-z_]{1,30}) (\d{1,20})$/gm)) {
    found.set(name, Number(value));
  }
  const value = (name: string, unit = 1): number | undefined => {
    const number = found.get(name);
    return number === undefined ? undefined : number / unit;
  };
  const used = {
    processorMs: value("processor_us", 1000),
    processors: value("processors_thousandths", 1000),
    memoryBytes: value("memory"),
    memoryLimitBytes: value("memory_limit"),
    processes: value("processes"),
  };
  return Object.fromEntries(Object.entries(used).filter(([, number]) => number !== undefined));
}
