import { ensureInstalled, runPnpmAndExit } from "./workspace.mjs";

ensureInstalled();
process.env.TURBO_TELEMETRY_DISABLED = "1";
runPnpmAndExit(["exec", "turbo", "run", "build", ...process.argv.slice(2)]);
