import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "fenced/kubernetes");

/**
 * A kubeconfig for the tests' cluster: from `KUBECONFIG`, otherwise that of the cluster that `scripts/ci/kubernetes.sh` starts.
 * Tests read it themselves, so it is one file with one context, whatever `KUBECONFIG` contains.
 */
export const testKubeconfig: string = oneFile(process.env.KUBECONFIG ?? "", join(cache, "run/kubeconfig"));

function oneFile(given: string, own: string): string {
  if (given === "" || given === own) return own;
  try {
    const words = ["config", "view", "--minify", "--flatten", "--raw"];
    const text = execFileSync("kubectl", words, { timeout: 20_000, stdio: ["ignore", "pipe", "ignore"] });
    const file = join(cache, `given-${createHash("sha256").update(text).digest("hex").slice(0, 12)}`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  } catch {
    // Without kubectl, or a current context, the cluster is not used.
    return given;
  }
}
