import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { needs } from "@fenced/test-support";
import { expect, it, onTestFinished } from "vitest";

const script = join(import.meta.dirname, "../../scripts/ci/kubernetes.sh");

it("lets a command with a cluster look for backends itself, whatever was found before", needs("bash"), async () => {
  const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const kubectl = join(directory, "kubectl");
  await writeFile(kubectl, "#!/bin/sh\necho ok\n");
  await chmod(kubectl, 0o755);
  const env = {
    PATH: [directory, process.env["PATH"] ?? ""].join(delimiter),
    HOME: directory,
    KUBECONFIG: join(directory, "kubeconfig"),
    FENCED_BACKENDS: join(directory, "backends.json"),
  };
  const words = ["with", "sh", "-c", 'echo "${FENCED_BACKENDS-unset} $FENCED_REQUIRE"'];
  const { stdout } = await promisify(execFile)(script, words, { env });
  expect(stdout).toBe("unset kubernetes,root\n");
});
