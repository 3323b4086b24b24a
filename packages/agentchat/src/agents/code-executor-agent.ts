import {
  type CodeExecutor,
  type Component,
  type ComponentModel,
  InvalidInputError,
  type JsonObject,
} from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import { jsonObjectSchema } from "../common/json.ts";
import { parseState } from "../common/parse-state.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { ChatCompletionContext } from "../contexts/chat-completion-context.ts";
import { UnboundedChatCompletionContext } from "../contexts/unbounded-chat-completion-context.ts";
import { codeAnswer, CodeRunner } from "../execution/code-runner.ts";
import { findFencedCode, noCodeMessage, notRunNote, withNote } from "../execution/runnable-code.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { textMessage } from "../messages/create-message.ts";
import { messageToModelMessages } from "../messages/message-to-model-messages.ts";
import { BaseChatAgent } from "./base-chat-agent.ts";
import type { AgentResponse } from "./chat-agent.ts";
import { codeExecutorAgentComponent, dumpCodeExecutorAgent } from "./code-executor-agent-config.ts";
import { type CodeExecutorAgentOptions, codeExecutorAgentOptions } from "./code-executor-agent-options.ts";
import { codeWritingTurn, type WaitingCode } from "./code-writing-turn.ts";
import { Turn } from "./turn.ts";
import { undoUnfinishedTurn } from "./undo-unfinished-turn.ts";

type Items = AsyncGenerator<AgentMessage | AgentResponse, void, void>;

const stateSchema = z.object({
  modelContext: jsonObjectSchema,
  waiting: z
    .object({
      id: z.string(),
      content: z.string(),
      modelContext: jsonObjectSchema,
      heard: z.array(z.string()),
      attempt: z.int().min(0),
    })
    .optional(),
});

/**
 * An agent that runs code.
 *
 * Without `modelClient` it runs the code blocks of the text messages that it receives and answers with the output. With
 * `modelClient` it writes the code itself, runs it, corrects it if allowed, and answers with the model's reflection on
 * the output; every step is an event.
 *
 * @example
 * await using executor = new DockerCommandLineCodeExecutor();
 * const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor, sources: ["coder"] });
 */
export class CodeExecutorAgent extends BaseChatAgent {
  /** Creates the agent that `dumpComponent` described. It owns its executor, which stops when the agent is disposed of. */
  static readonly component: Component<CodeExecutorAgent> = codeExecutorAgentComponent((options) => {
    const agent = new CodeExecutorAgent(options);
    agent.own(options.codeExecutor);
    return agent;
  });

  readonly #options: CodeExecutorAgentOptions;
  readonly #modelContext: ChatCompletionContext;
  readonly #runner: CodeRunner;
  /** The agent's own code that is waiting for approval. */
  #waiting: WaitingCode | undefined;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: CodeExecutorAgentOptions) {
    const checked = checkOptions(codeExecutorAgentOptions, options, "CodeExecutorAgent");
    super({ name: checked.name, description: checked.description ?? "Runs code and answers with its output." });
    this.#options = checked;
    this.#modelContext = checked.modelContext ?? new UnboundedChatCompletionContext();
    if (checked.approvalFunc && checked.pendingApprovals) {
      throw new InvalidInputError("CodeExecutorAgent accepts either approvalFunc or pendingApprovals, not both", {
        remedy: "Set one of them.",
      });
    }
    this.#runner = new CodeRunner(checked);
  }

  /** Where the code runs. */
  get codeExecutor(): CodeExecutor {
    return this.#options.codeExecutor;
  }

  /** @throws ComponentError if there is an `approvalFunc` or `pendingApprovals`, which cannot be saved. */
  override dumpComponent(): ComponentModel {
    return CodeExecutorAgent.component.dump(
      dumpCodeExecutorAgent({ ...this.#options, description: this.description, modelContext: this.#modelContext }),
    );
  }

  override onMessagesStream(messages: readonly ChatMessage[], options: SignalOptions = {}): Items {
    return this.turn(messages, options, (signal) => this.#takeTurn(messages, signal));
  }

  override async reset(): Promise<void> {
    this.assertIdle("be reset");
    this.#waiting = undefined;
    await this.#modelContext.reset();
  }

  override async saveState(): Promise<JsonObject> {
    this.assertIdle("save its state");
    const modelContext = await this.#modelContext.saveState();
    const waiting = this.#waiting;
    return waiting ? { modelContext, waiting: { ...waiting, heard: [...waiting.heard] } } : { modelContext };
  }

  override async loadState(state: JsonObject): Promise<void> {
    this.assertIdle("load a state");
    const { modelContext, waiting } = parseState(stateSchema, state, `agent "${this.name}"`);
    await this.#modelContext.loadState(modelContext);
    this.#waiting = waiting;
  }

  async *#takeTurn(messages: readonly ChatMessage[], signal: AbortSignal): Items {
    const { modelClient, modelClientStream = false, maxRetriesOnError = 0 } = this.#options;
    const languages = await this.#runner.start(signal);
    const turn = new Turn(this.name, signal);
    if (modelClient === undefined) {
      yield* this.#runReceived(messages, languages, turn);
      return;
    }
    const items = codeWritingTurn(messages, {
      turn,
      runner: this.#runner,
      modelClient,
      modelContext: this.#modelContext,
      stream: modelClientStream,
      maxRetries: maxRetriesOnError,
      systemMessage: this.#options.systemMessage ?? this.#defaultSystemMessage(languages),
      languages,
      waiting: this.#waiting,
      onWaiting: (waiting) => {
        this.#waiting = waiting;
      },
    });
    yield* undoUnfinishedTurn(this.#modelContext, items);
  }

  async *#runReceived(messages: readonly ChatMessage[], languages: readonly string[], turn: Turn): Items {
    const { sources } = this.#options;
    const heard = messages.filter(({ source }) => sources === undefined || sources.includes(source));
    const texts = heard.filter((message) => message.type === "TextMessage");
    const code = findFencedCode(
      texts.map(({ content }) => content),
      languages,
    );
    if (code.runnable.length === 0) {
      yield turn.response(textMessage({ source: this.name, content: noCodeMessage(code, languages) }));
      return;
    }
    const context = messages.flatMap(messageToModelMessages);
    const messageIds = texts.map(({ id }) => id);
    const options = { context, source: this.name, messageIds, signal: turn.signal };
    const outcome = yield* this.#runner.run(code.runnable, options);
    const content = withNote(outcome.text, notRunNote(code, languages));
    yield turn.response(codeAnswer(outcome, { source: this.name, content }));
  }

  #defaultSystemMessage(languages: readonly string[]): string {
    const functions = this.#options.codeExecutor.formatFunctionsForPrompt();
    const instructions =
      "You solve tasks by writing code. Put complete code, ready to run, in a Markdown fence that names its language " +
      `(one of: ${languages.join(", ")}); it is run at once, and you see what it prints, so let it print what you ` +
      "need to know. If no code is needed, just answer.";
    return functions === "" ? instructions : `${instructions}\n\n${functions}`;
  }
}
