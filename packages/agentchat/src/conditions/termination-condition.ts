import {
  type Component,
  type ComponentContext,
  type ComponentModel,
  componentModelSchema,
  defineComponent,
  InvalidInputError,
} from "@fenced/core";
import { checkOptions, objectOption } from "@fenced/core/options";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { StopMessage } from "../messages/chat-message.ts";
import { stopMessage } from "../messages/create-message.ts";

/** Decides when a chat ends. A team resets its condition when a run starts. */
export interface TerminationCondition {
  /** True if it has fired; it must then be reset before it is checked again. */
  readonly terminated: boolean;

  /**
   * Checks the messages and events since the last check: those of the task when a run starts, then those of each turn.
   *
   * @returns the reason to end the chat, or `undefined` to continue.
   * @throws InvalidInputError if it has fired already and was not reset.
   */
  check(messages: readonly AgentMessage[]): Promise<StopMessage | undefined>;

  /** Forgets what it has seen. */
  reset(): Promise<void>;

  /** A condition that fires once both have fired, even if at different times. */
  and(other: TerminationCondition): TerminationCondition;

  /** A condition that fires as soon as either does. */
  or(other: TerminationCondition): TerminationCondition;

  /** @throws ComponentError if a setting cannot be dumped. */
  dumpComponent(): ComponentModel;
}

/** The base class of conditions: a subclass implements `findReason`, and `restart` if it has state. */
export abstract class BaseTerminationCondition implements TerminationCondition {
  #terminated = false;

  get terminated(): boolean {
    return this.#terminated;
  }

  async check(messages: readonly AgentMessage[]): Promise<StopMessage | undefined> {
    if (this.#terminated) {
      throw new InvalidInputError(`${this.constructor.name} has already fired`, {
        remedy: "Call reset() before you use it again.",
      });
    }
    const reason = await this.findReason(messages);
    if (reason === undefined) return undefined;
    this.#terminated = true;
    return stopMessage({ source: this.constructor.name, content: reason });
  }

  async reset(): Promise<void> {
    this.#terminated = false;
    await this.restart();
  }

  and(other: TerminationCondition): TerminationCondition {
    return new AndTermination([this, other]);
  }

  or(other: TerminationCondition): TerminationCondition {
    return new OrTermination([this, other]);
  }

  abstract dumpComponent(): ComponentModel;

  /** The reason to end the chat, as a sentence, or `undefined` to continue. */
  protected abstract findReason(messages: readonly AgentMessage[]): string | undefined | Promise<string | undefined>;

  /** Forgets what was counted or remembered. */
  protected restart(): void | Promise<void> {}
}

const configSchema = z.strictObject({ conditions: z.array(componentModelSchema).min(1) });

const conditionsArgument = z.object({
  conditions: z.array(objectOption<TerminationCondition>(["check", "reset"], "a termination condition")).min(1),
});

/** Fires once all of its conditions have fired, even if at different times. Made by `.and()`. */
export class AndTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<AndTermination> = defineComponent({
    provider: "@fenced/agentchat:AndTermination",
    componentType: "termination",
    schema: configSchema,
    load: async (config, context) => new AndTermination(await loadConditions(config, context)),
  });

  readonly #conditions: readonly TerminationCondition[];
  #reasons: string[] = [];

  /**
   * @param conditions - at least one.
   * @throws InvalidInputError if the list is empty, or has an entry that is not a condition.
   */
  constructor(conditions: readonly TerminationCondition[]) {
    super();
    this.#conditions = checkOptions(conditionsArgument, { conditions }, "AndTermination").conditions;
  }

  override dumpComponent(): ComponentModel {
    return AndTermination.component.dump({
      conditions: this.#conditions.map((condition) => condition.dumpComponent()),
    });
  }

  protected override async findReason(messages: readonly AgentMessage[]): Promise<string | undefined> {
    this.#reasons.push(...(await checkAll(this.#conditions, messages)));
    return this.#conditions.every((condition) => condition.terminated) ? this.#reasons.join(" ") : undefined;
  }

  protected override async restart(): Promise<void> {
    this.#reasons = [];
    await resetAll(this.#conditions);
  }
}

/** Fires as soon as one of its conditions does. Made by `.or()`. */
export class OrTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<OrTermination> = defineComponent({
    provider: "@fenced/agentchat:OrTermination",
    componentType: "termination",
    schema: configSchema,
    load: async (config, context) => new OrTermination(await loadConditions(config, context)),
  });

  readonly #conditions: readonly TerminationCondition[];

  /**
   * @param conditions - at least one.
   * @throws InvalidInputError if the list is empty, or has an entry that is not a condition.
   */
  constructor(conditions: readonly TerminationCondition[]) {
    super();
    this.#conditions = checkOptions(conditionsArgument, { conditions }, "OrTermination").conditions;
  }

  override dumpComponent(): ComponentModel {
    return OrTermination.component.dump({ conditions: this.#conditions.map((condition) => condition.dumpComponent()) });
  }

  protected override async findReason(messages: readonly AgentMessage[]): Promise<string | undefined> {
    const reasons = await checkAll(this.#conditions, messages);
    return reasons.length > 0 ? reasons.join(" ") : undefined;
  }

  protected override async restart(): Promise<void> {
    await resetAll(this.#conditions);
  }
}

async function checkAll(
  conditions: readonly TerminationCondition[],
  messages: readonly AgentMessage[],
): Promise<string[]> {
  const waiting = conditions.filter((condition) => !condition.terminated);
  const stops = await Promise.all(waiting.map((condition) => condition.check(messages)));
  return stops.flatMap((stop) => (stop === undefined ? [] : [stop.content]));
}

async function resetAll(conditions: readonly TerminationCondition[]): Promise<void> {
  // All at once: a late reset must not erase what happens right after a run starts.
  await Promise.all(conditions.map((condition) => condition.reset()));
}

async function loadConditions(
  { conditions }: z.output<typeof configSchema>,
  context: ComponentContext,
): Promise<TerminationCondition[]> {
  return Promise.all(conditions.map((each, index) => context.load<TerminationCondition>(each, `conditions[${index}]`)));
}
