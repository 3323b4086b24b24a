import type { FixtureLanguage } from "./fixture-language.ts";
import { javascript } from "./javascript.ts";
import { python } from "./python.ts";
import { bash, sh } from "./shell.ts";

/** The languages for which the suite has programs, in order of preference. */
export const knownLanguages: readonly FixtureLanguage[] = [python, javascript, bash, sh];
