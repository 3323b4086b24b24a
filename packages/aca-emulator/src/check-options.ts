import type { EmulatorOptions } from "./emulator-options.ts";

type Check = readonly [isRight: (value: unknown) => boolean, what: string];

const text: Check = [(value) => typeof value === "string" && value !== "", "a non-empty string"];
const texts: Check = [
  (value) => Array.isArray(value) && value.every((each) => typeof each === "string"),
  "a list of strings",
];
const flag: Check = [(value) => typeof value === "boolean", "true or false"];
const count = (from: number, to: number = Number.MAX_SAFE_INTEGER): Check => [
  (value) => typeof value === "number" && Number.isSafeInteger(value) && value >= from && value <= to,
  `a whole number from ${from} to ${to}`,
];
const duration: Check = [(value) => typeof value === "number" && value > 0, "a positive number"];

/** What each option must be. A missing option does not compile. */
const checks: { readonly [Name in keyof EmulatorOptions]-?: Check } = {
  port: count(0, 65_535),
  host: text,
  allowedHosts: texts,
  poolType: [
    (value) => value === "PythonLTS" || value === "NodeLTS" || value === "Shell",
    "PythonLTS, NodeLTS or Shell",
  ],
  python: text,
  maxSessions: count(1),
  cooldownMs: duration,
  token: text,
  syncLimitMs: duration,
  outputLimit: count(0),
  pageSize: count(1),
  wrappedBodies: flag,
  namespaces: flag,
  packages: texts,
  faults: [(value) => Array.isArray(value), "a list of faults"],
};

/** @throws TypeError if an option is unknown or wrong. */
export function checkOptions(options: EmulatorOptions): void {
  const known: ReadonlyMap<string, Check> = new Map(Object.entries(checks));
  for (const [name, value] of Object.entries(options)) {
    const check = known.get(name);
    if (check === undefined) {
      throw new TypeError(
        `startAcaEmulator: unknown option "${name}". The options are ${[...known.keys()].join(", ")}.`,
      );
    }
    const [isRight, what] = check;
    if (value !== undefined && !isRight(value)) {
      throw new TypeError(`startAcaEmulator: the option "${name}" must be ${what}.`);
    }
  }
}
