import type { ChatAgent } from "../agents/chat-agent.ts";
import type { TerminationCondition } from "../conditions/termination-condition.ts";

/** What a `RoundRobinGroupChat` is made from. */
export interface RoundRobinGroupChatOptions {
  /** The agents in the order in which they speak; each with a name of its own. They stay the caller's. */
  readonly participants: readonly ChatAgent[];
  /** When the chat is over. Reset when a run starts. Default: never. */
  readonly terminationCondition?: TerminationCondition | undefined;
  /** How many turns a run takes at most. Default: no limit. */
  readonly maxTurns?: number | undefined;
  /** Default: `RoundRobinGroupChat`. */
  readonly name?: string | undefined;
  /** What the team is for. Default: a general text. */
  readonly description?: string | undefined;
}
