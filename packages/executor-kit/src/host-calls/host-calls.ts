import { createHash } from "node:crypto";
import type { Duplex } from "node:stream";
import { type ApproveHostCall, type HostCallEvent, type HostFunction, InvalidInputError } from "@fenced/core";
import type { BlockEvent, BlockOutcome } from "../run/block-run.ts";
import type { Sink } from "../run/sink.ts";
import type { ExecutorTelemetry } from "../telemetry/executor-telemetry.ts";
import { BlockCalls, type BlockCallSettings } from "./block-calls.ts";
import { HostCallDesk } from "./host-call-desk.ts";

/** Settings of an executor's host calls. */
export interface HostCallsSettings {
  readonly functions: readonly HostFunction[];
  readonly approve: ApproveHostCall | undefined;
  /** Maximum number of calls per block. */
  readonly maxCalls: number;
  readonly telemetry: ExecutorTelemetry;
}

/** The host functions for one call of the executor. */
export interface HostChoice {
  /** By name. */
  readonly functions: ReadonlyMap<string, HostFunction>;
  /** Identifies the modules that contain exactly these; `undefined` for the executor's own functions only. */
  readonly variant: string | undefined;
}

/** No host functions at all. */
export const nothingChosen: HostChoice = { functions: new Map(), variant: undefined };

/** A block whose programs can call the host. */
export interface HostedBlock {
  readonly index: number;
  /** Gets the events of its calls. */
  readonly sink: Sink<BlockEvent | HostCallEvent>;
}

/** A block of a run that goes on without this program. */
export type AnsweredBlock = Pick<BlockCallSettings, "index" | "sink" | "ready">;

/** An executor's host functions, and the channel through which code calls them. */
export class HostCalls {
  readonly #settings: HostCallsSettings;
  readonly #desk: HostCallDesk;
  readonly #every = new Map<string, HostFunction>();
  #address = "";

  constructor(settings: HostCallsSettings) {
    this.#settings = settings;
    this.#desk = new HostCallDesk(settings);
  }

  /** All host functions so far. */
  get every(): readonly HostFunction[] {
    return [...this.#every.values()];
  }

  /**
   * The functions of one call: the executor's own, and those that the call adds.
   *
   * @throws InvalidInputError if one of them needs approval and there is no `approveHostCall`.
   */
  choose(more: readonly HostFunction[] = []): HostChoice {
    const { functions, approve } = this.#settings;
    const chosen = withMore(functions, more);
    const unapproved = approve
      ? undefined
      : [...chosen.values()].find((each) => each.needsApproval !== false && !each.approve);
    if (unapproved) {
      throw new InvalidInputError(
        `The function ${unapproved.name} needs approval, but nothing is set up to approve it`,
        {
          remedy: "Set `approveHostCall` on the executor or `approve` on the function, or leave the function out.",
        },
      );
    }
    for (const each of chosen.values()) this.#every.set(each.name, each);
    return { functions: chosen, variant: more.length === 0 ? undefined : variantOf([...chosen.values()]) };
  }

  /** Lets the backend connect its programs with this desk. */
  async open(connect: (accept: (connection: Duplex) => void) => Promise<string>): Promise<void> {
    this.#address = await connect((connection) => this.#desk.accept(connection));
  }

  /** The variables with which a block of a run that goes on without this program calls functions. */
  variables(token: string): Readonly<Record<string, string>> {
    return { [addressVariable]: this.#address, [tokenVariable]: token };
  }

  /** Answers the calls of such a block; close them when it ends. */
  answer(functions: ReadonlyMap<string, HostFunction>, block: AnsweredBlock): BlockCalls {
    const { approve, maxCalls, telemetry } = this.#settings;
    return new BlockCalls({ functions, approve, maxCalls, telemetry, ...block });
  }

  /** Runs a block to its end while its programs can call these functions. */
  async run(
    { functions }: HostChoice,
    { index, sink }: HostedBlock,
    start: (env: Readonly<Record<string, string>>) => Promise<BlockOutcome>,
  ): Promise<BlockOutcome> {
    const { approve, maxCalls, telemetry } = this.#settings;
    const calls = this.#desk.open({ functions, approve, maxCalls, index, sink, telemetry });
    try {
      return await start(this.variables(calls.token));
    } finally {
      this.#desk.close(calls);
    }
  }
}

/** The functions by name; later functions replace earlier ones of the same name. */
export function withMore(
  functions: readonly HostFunction[],
  more: readonly HostFunction[],
): ReadonlyMap<string, HostFunction> {
  return new Map([...functions, ...more].map((each) => [each.name, each]));
}

const [addressVariable, tokenVariable] = ["FENCED_HOST_CALLS", "FENCED_HOST_TOKEN"] as const;

/** A name that is the same for functions with equal stubs. */
function variantOf(functions: readonly HostFunction[]): string {
  const described = functions.map((each) => [each.name, each.description, each.inputSchema, each.outputSchema]);
  return createHash("sha256").update(JSON.stringify(described)).digest("hex").slice(0, 16);
}
