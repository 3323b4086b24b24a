import { InvalidInputError } from "@fenced/core";

/** Returns `value` if it is a whole number of at least `minimum`. */
export function checkCount(name: string, value: number, minimum: number): number {
  if (Number.isSafeInteger(value) && value >= minimum) return value;
  throw new InvalidInputError(`${name} is ${value}`, { remedy: `Use a whole number, ${minimum} or more.` });
}
