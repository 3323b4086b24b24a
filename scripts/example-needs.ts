import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { detectBackends, requiredBackends, type BackendName } from "../test-support/backends.ts";

const backends = await detectBackends();
const required: readonly string[] = requiredBackends(process.env.FENCED_REQUIRE);

/** What an example needs, and whether this machine has it. */
export interface Needs {
  /** Why it cannot run here; empty if it can. */
  readonly missing: readonly string[];
  /** Whether `FENCED_REQUIRE` names something that is missing; if so, the example has failed. */
  readonly required: boolean;
}

/** Looks for what an example needs, as its line `// needs: python3, pip:tabulate, OPENAI_API_KEY` says. */
export function needsOf(source: string): Needs {
  const missing = namesOf(source).filter((need) => !isHere(need));
  return {
    missing: missing.map((need) => `${need}${reason(need)}`),
    required: missing.some((need) => required.includes(need)),
  };
}

function namesOf(source: string): string[] {
  const line = /^\/\/ needs: (.+)$/m.exec(source)?.[1] ?? "";
  return line
    .split(",")
    .map((need) => need.trim())
    .filter((need) => need !== "");
}

function isHere(need: string): boolean {
  if (need.startsWith("pip:")) return indexHas(need.slice("pip:".length));
  if (need === need.toUpperCase()) return (process.env[need] ?? "") !== "";
  if (!isBackend(need)) {
    throw new Error(`"${need}" is not a backend. Use one of: ${Object.keys(backends).join(", ")}.`);
  }
  return backends[need].available;
}

function reason(need: string): string {
  if (need.startsWith("pip:")) return " (pip reaches no index that has it)";
  const backend = isBackend(need) ? backends[need] : undefined;
  return backend?.available === false ? ` (${backend.reason})` : "";
}

function isBackend(name: string): name is BackendName {
  return name in backends;
}

/** Whether pip can install a package. */
function indexHas(requirement: string): boolean {
  const destination = mkdtempSync(join(tmpdir(), "fenced-pip-"));
  const args = ["-m", "pip", "download", "--quiet", "--no-deps", "--retries=0", "--timeout=10", "--dest", destination];
  const { status } = spawnSync("python3", [...args, requirement], { stdio: "ignore", timeout: 60_000 });
  rmSync(destination, { recursive: true });
  return status === 0;
}
