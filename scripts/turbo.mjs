/**
 * Runs tasks of all packages: `node scripts/turbo.mjs build lint`. Options of `turbo run` may follow, and after `--` arguments for
 * the tasks' commands.
 */
import { runTasks } from "./tasks.mjs";

const words = process.argv.slice(2);
const end = words.includes("--") ? words.indexOf("--") : words.length;
const own = words.slice(0, end);
const options = own.filter((word) => word.startsWith("-"));
if (!options.some((option) => option.startsWith("--output-logs"))) options.push("--output-logs=new-only");
const { status } = await runTasks(
  own.filter((word) => !word.startsWith("-")),
  {
    turboArguments: options,
    taskArguments: words.slice(end + 1).filter((word) => word !== "--"),
  },
);
process.exitCode = status;
