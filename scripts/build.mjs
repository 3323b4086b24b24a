/**
 * Builds projects and what they depend on, all of them by default: `node scripts/build.mjs packages/core`. The compiler itself
 * knows what is up to date.
 */
import { build, ensureInstalled, userArguments } from "./workspace.mjs";

ensureInstalled();
build(userArguments());
