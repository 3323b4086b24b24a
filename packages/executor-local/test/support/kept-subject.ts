import { access } from "node:fs/promises";
import path from "node:path";
import { connectExecutor, type SessionHandle } from "@fenced/core";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import type { ExecutorSubject } from "@fenced/executor-testkit";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { z } from "zod";
import { hostSubject } from "./host-subject.ts";

/** Executors of one suite, and what their sessions have on this machine. */
class KeptExecutor extends LocalCommandLineCodeExecutor {
  static readonly ids = new Set<string>();
  static readonly places = new Set<string>();

  override get handle(): SessionHandle | undefined {
    const found = super.handle;
    KeptExecutor.ids.add(this.id);
    for (const each of found ? placesOf(found.session) : []) KeptExecutor.places.add(each);
    return found;
  }
}

/** Processes, directories and control groups of the sessions whose handles were asked for. */
export function remains(): Promise<string[]> {
  return remainsOn(KeptExecutor.ids, KeptExecutor.places);
}

/** Those of one session, of any user. */
export function remainsOf({ session }: SessionHandle): Promise<string[]> {
  return remainsOn([z.uuid().parse(session["id"])], placesOf(session));
}

function placesOf({ directory, groups }: SessionHandle["session"]): string[] {
  const all: unknown[] = [directory, ...(Array.isArray(groups) ? groups : [])];
  return all.filter((each) => typeof each === "string");
}

async function remainsOn(ids: Iterable<string>, places: Iterable<string>): Promise<string[]> {
  const all = [...ids];
  const processes = (await listProcesses()).filter(({ pid }) =>
    all.some((id) => hasVariable(pid, "FENCED_SESSION", id)),
  );
  const found = [...places].map((each) =>
    access(each).then(
      () => [each],
      () => [],
    ),
  );
  return [...processes.map(({ pid }) => `process ${pid}`), ...(await Promise.all(found)).flat()];
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

const kinds = {
  warm: { warm: {} },
  stateful: { stateful: true },
  "stateful-sandboxed": { isolation: "os-sandbox", stateful: true },
} as const;

/** Executors whose sessions outlive their programs, for the kit. */
export async function keptSubject(kind: keyof typeof kinds): Promise<ExecutorSubject> {
  return {
    ...hostSubject,
    name: `LocalCommandLineCodeExecutor, ${kind},`,
    create: (options) => createKept({ ...options, ...kinds[kind] }),
    connect: connectKept,
    takesNetworkPolicy: kind === "stateful-sandboxed",
    hostCommand: [...(await bundledCommand(path.join(import.meta.dirname, "../fixtures/executor-host.ts"))), kind],
    listResources: remains,
  };
}
