import { randomUUID } from "node:crypto";
import type { ChatCompletionClient, ModelMessage } from "@fenced/core";
import { fillPlaceholders } from "../common/fill-placeholders.ts";
import { withoutThoughts } from "../common/without-thoughts.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { selectorEvent } from "../messages/create-message.ts";
import { callModel } from "../models/call-model.ts";

/** The default prompt. */
export const defaultSelectorPrompt = `You lead a conversation between these participants:
{roles}

Read what was said so far. Then choose who speaks next, one of {participants}. Answer with the name and nothing else.

{history}

Now choose who speaks next, one of {participants}. Answer with the name and nothing else.`;

/** Options of `askForSpeaker`. */
export interface AskForSpeakerOptions {
  readonly modelClient: ChatCompletionClient;
  readonly prompt: string;
  readonly participants: readonly { readonly name: string; readonly description: string }[];
  readonly candidates: readonly string[];
  readonly history: string;
  readonly maxAttempts: number;
  /** The last speaker, if they may not speak again. */
  readonly notAgain: string | undefined;
  readonly stream: boolean;
  /** The team's name. */
  readonly source: string;
  readonly signal: AbortSignal;
}

/** Asks a model who speaks next; tells it what is wrong with its answer until it names one candidate. */
export async function* askForSpeaker(
  options: AskForSpeakerOptions,
): AsyncGenerator<AgentMessage, string | undefined, void> {
  const { modelClient, maxAttempts, stream, source, signal } = options;
  const messages: ModelMessage[] = [{ role: "user", content: fillPrompt(options), source }];
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const messageId = randomUUID();
    const { result } = yield* callModel(messages, { modelClient, stream, source, messageId, signal });
    const answer = typeof result.content === "string" ? result.content : "";
    yield selectorEvent({ id: messageId, source, content: answer, modelsUsage: result.usage });
    const names = options.participants.map(({ name }) => name);
    const mentioned = mentionedIn(withoutThoughts(answer), names);
    const problem = problemWith(mentioned, options);
    if (problem === undefined) return mentioned[0];
    messages.push({ role: "assistant", content: answer, source });
    messages.push({ role: "user", content: problem, source });
  }
  return undefined;
}

function fillPrompt({ prompt, participants, candidates, history }: AskForSpeakerOptions): string {
  const roles = participants.map(({ name, description }) => `${name}: ${description.replaceAll("\n", " ")}`.trim());
  return fillPlaceholders(prompt, { roles: roles.join("\n"), participants: JSON.stringify(candidates), history });
}

function problemWith(mentioned: readonly string[], { candidates, notAgain }: AskForSpeakerOptions): string | undefined {
  const choice = `Answer with one of: ${JSON.stringify(candidates)}.`;
  const [name, ...more] = mentioned;
  if (name === undefined) return `That is not the name of a participant. ${choice}`;
  if (more.length > 0) return `Exactly one name is needed, not several. ${choice}`;
  if (name === notAgain) return `${name} spoke last and may not speak again now. ${choice}`;
  return candidates.includes(name) ? undefined : `${name} may not speak now. ${choice}`;
}

/**
 * The participants that a text names as separate words, the longest names first: `analyst-2` does not mention `analyst`.
 * Models may write a space or `\_` for the `_` in a name.
 */
function mentionedIn(text: string, names: readonly string[]): readonly string[] {
  let rest = text;
  return names
    .toSorted((one, other) => other.length - one.length)
    .filter((name) => {
      const forms = [name, name.replaceAll("_", " "), name.replaceAll("_", String.raw`\_`)].map(escape);
      const before = rest;
      rest = rest.replaceAll(new RegExp(`(?<![\\w-])(?:${forms.join("|")})(?!\\w|-\\w)`, "g"), " ");
      return rest !== before;
    });
}

function escape(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}-]/g, String.raw`\$&`);
}
