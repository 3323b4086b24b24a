import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { directoryStore } from "@fenced/checkpoints";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import type { BackendName } from "@fenced/test-support/backends";
import { onTestFinished } from "vitest";
import type { ExecutorSandboxesOptions } from "../../src/index.ts";

/** Where the adapters are tried. */
export const places: readonly { readonly place: string; readonly backends: readonly BackendName[] }[] = [
  { place: "an OS sandbox", backends: ["bubblewrap", "python3"] },
  { place: "a container", backends: ["docker"] },
];

/** Options of adapters whose sandboxes are such places, with snapshots. */
export function inPlace(place: string): ExecutorSandboxesOptions {
  const folder = mkdtempSync(join(tmpdir(), "fenced-adapters-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return {
    createExecutor: ({ restore }) => {
      if (place === "a container") {
        return new DockerCommandLineCodeExecutor({ image: "fenced-test:python", network: "none", restore });
      }
      const isolation = place === "this host" ? "none" : "os-sandbox";
      return new LocalCommandLineCodeExecutor({ isolation, restore });
    },
    snapshots: directoryStore(folder),
  };
}
