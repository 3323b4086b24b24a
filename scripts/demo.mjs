import { runTasks } from "./tasks.mjs";
import { runAndExit, userArguments } from "./workspace.mjs";

const slow = setTimeout(() => process.stderr.write("Building, which takes up to a minute the first time ...\n"), 1000);
const turboArguments = ["--output-logs=errors-only"];
const { status } = await runTasks(["@fenced/demo#build"], { turboArguments, quiet: true });
clearTimeout(slow);
if (status === 0) runAndExit("apps/demo/dist/main.js", userArguments(), process.env.INIT_CWD);
else process.exitCode = status;
