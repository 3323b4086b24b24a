import { runTasks } from "./tasks.mjs";
import { runAndExit, userArguments } from "./workspace.mjs";

const { status } = await runTasks(["@fenced/demo#build"], { turboArguments: ["--output-logs=errors-only"] });
if (status === 0) runAndExit("apps/demo/dist/main.js", userArguments(), process.env.INIT_CWD);
else process.exitCode = status;
