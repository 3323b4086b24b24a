import { buildAloud, ensureInstalled, runAndExit, userArguments } from "./workspace.mjs";

ensureInstalled();
await buildAloud(["apps/demo"]);
runAndExit("apps/demo/dist/main.js", userArguments(), process.env.INIT_CWD);
