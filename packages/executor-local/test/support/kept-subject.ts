import { access } from "node:fs/promises";
import path from "node:path";
import { connectExecutor, type SessionHandle } from "@fenced/core";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import type { ExecutorSubject } from "@fenced/executor-testkit";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { hostSubject } from "./host-subject.ts";

/** Executors of one suite, and what their sessions have on this machine. */
class KeptExecutor extends LocalCommandLineCodeExecutor {
  static readonly ids = new Set<string>();
  static readonly places = new Set<string>();

  override get handle(): SessionHandle | undefined {
    const found = super.handle;
    KeptExecutor.ids.add(this.id);
    const { directory, groups } = found?.session ?? {};
    for (const each of [directory, ...(Array.isArray(groups) ? groups : [])]) {
      if (typeof each === "string") KeptExecutor.places.add(each);
    }
    return found;
  }
}

/** Processes, directories and control groups of the sessions whose handles were asked for. */
export async function remains(): Promise<string[]> {
  const processes = (await listProcesses()).filter(({ pid }) =>
    [...KeptExecutor.ids].some((id) => hasVariable(pid, "FENCED_SESSION", id)),
  );
  const places = await Promise.all(
    [...KeptExecutor.places].map((each) =>
      access(each).then(
        () => [each],
        () => [],
      ),
    ),
  );
  return [...processes.map(({ pid }) => `process ${pid}`), ...places.flat()];
}

/** Creates an executor whose session outlives it. */
export function createKept(
  options: ConstructorParameters<typeof LocalCommandLineCodeExecutor>[0],
): LocalCommandLineCodeExecutor {
  return new KeptExecutor(options);
}

/** Connects to its session. */
export function connectKept(
  handle: SessionHandle | undefined,
  options: Parameters<typeof connectExecutor>[1] = {},
): ReturnType<typeof connectExecutor> {
  if (!handle) throw new Error("there is no handle");
  return connectExecutor(handle, { ...options, importModule: () => import("@fenced/executor-local") });
}

/** Executors whose sessions outlive their programs, for the kit. */
export async function keptSubject(kind: "warm" | "stateful"): Promise<ExecutorSubject> {
  const extra = kind === "warm" ? { warm: {} } : { stateful: true };
  return {
    ...hostSubject,
    name: `LocalCommandLineCodeExecutor, ${kind},`,
    create: (options) => createKept({ ...options, ...extra }),
    connect: connectKept,
    hostCommand: [...(await bundledCommand(path.join(import.meta.dirname, "../fixtures/executor-host.ts"))), kind],
    listResources: remains,
  };
}
