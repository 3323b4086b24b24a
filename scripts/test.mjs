import { ensureInstalled, runAndExit, userArguments } from "./workspace.mjs";

ensureInstalled();
runAndExit("node_modules/vitest/vitest.mjs", ["run", ...userArguments()]);
