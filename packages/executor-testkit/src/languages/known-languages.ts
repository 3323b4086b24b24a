import type { FixtureLanguage } from "./fixture-language.ts";
import { javascript } from "./javascript.ts";
import { python } from "./python.ts";
import { bash, sh } from "./shell.ts";

/** The languages that the suite has programs for, the one it likes best first. */
export const knownLanguages: readonly FixtureLanguage[] = [python, javascript, bash, sh];
