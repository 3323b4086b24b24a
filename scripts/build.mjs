/**
 * Builds projects and their dependencies, all of them by default: `node scripts/build.mjs packages/core`. The compiler skips
 * projects that are up to date.
 */
import { build, ensureInstalled, userArguments } from "./workspace.mjs";

ensureInstalled();
build(userArguments());
