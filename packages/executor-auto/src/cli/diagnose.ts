import { type ExecutorCapabilities, FencedError } from "@fenced/core";
import { whatIsWrong } from "../explain.ts";
import type { FenceName } from "../fenced-executor.ts";
import { fences } from "../fences.ts";
import { openExecutor } from "../open-executor.ts";
import { endExecutor } from "../start-clock.ts";
import { findTools, type FoundTool } from "./tools.ts";

/** The fences that this machine has. */
export interface Diagnosis {
  /** The name of the strongest fence that works; `null` if none does. */
  readonly strongest: FenceName | null;
  /** All fences, strongest first. */
  readonly fences: readonly FenceState[];
  /** Programs and settings that fences and other executors use. */
  readonly tools: readonly FoundTool[];
}

/** Whether a fence works, determined by trying it. */
interface FenceState {
  readonly name: FenceName;
  readonly works: boolean;
  /** The level of isolation that it gives. */
  readonly isolation: ExecutorCapabilities["isolation"];
  /** Which kernel answers the code's system calls, if the fence works and that is known. */
  readonly kernel?: NonNullable<ExecutorCapabilities["kernel"]>;
  readonly problem?: string;
  readonly remedy?: string;
}

/** Levels of isolation by fence. */
const isolations = { docker: "container", "os-sandbox": "os-sandbox", wasm: "wasm" } as const;

/**
 * Tries all fences, and looks for the programs that they and other executors need. Downloads nothing and leaves nothing
 * behind.
 */
export async function diagnose({
  image = "python:3-slim",
  signal,
}: {
  readonly image: string | undefined;
  readonly signal: AbortSignal;
}): Promise<Diagnosis> {
  const [states, tools] = await Promise.all([
    Promise.all(fences.map(async ({ name }) => tryFence(name, image, signal))),
    findTools(),
  ]);
  signal.throwIfAborted();
  return { strongest: states.find(({ works }) => works)?.name ?? null, fences: states, tools };
}

async function tryFence(name: FenceName, image: string, signal: AbortSignal): Promise<FenceState> {
  const state = { name, isolation: isolations[name] };
  try {
    const ofContainer = { pull: "never", image } as const;
    const executor = await openExecutor(name, { ...(name === "docker" ? ofContainer : {}), signal });
    const { kernel } = executor.capabilities;
    await endExecutor(executor);
    return { ...state, ...(kernel && { kernel }), works: true };
  } catch (error) {
    // The caller did not set this option: this command does.
    const isNotPulled = FencedError.isInstance(error) && error.option === "pull";
    return { ...state, works: false, ...(isNotPulled ? missing(image) : whatIsWrong(error)) };
  }
}

function missing(image: string): Pick<FenceState, "problem" | "remedy"> {
  return {
    problem: `The daemon has no image "${image}".`,
    remedy: `Run \`docker pull ${image}\`; the first start does it, too.`,
  };
}
