import { build, ensureInstalled, runAndExit, userArguments } from "./workspace.mjs";

ensureInstalled();
build("apps/demo");
runAndExit("apps/demo/dist/main.js", userArguments(), process.env.INIT_CWD);
