import { randomUUID } from "node:crypto";
import type { ModelUsage } from "@fenced/core";
import { objectOption, type OptionSchemas, stringsOption } from "@fenced/core/options";
import * as z from "zod";

/** The fields of all messages and events, which are plain JSON and survive `JSON.parse(JSON.stringify(message))`. */
export interface MessageBase {
  /** A UUID. */
  readonly id: string;
  /** The name of the agent or person that it comes from. */
  readonly source: string;
  /** When it was created: an ISO 8601 time, e.g. `"2026-11-20T18:44:00.000Z"`. */
  readonly createdAt: string;
  /** Data for programs, e.g. `exitCode` on the answers of a `CodeExecutorAgent`. Models do not see it. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Tokens of the model call that produced this message, and of no other call. */
  readonly modelsUsage?: ModelUsage;
}

/** The common fields that you can set when you create a message. */
export interface MessageOptions {
  /** The name of the agent or person that it comes from. */
  readonly source: string;
  /** Default: a new UUID. */
  readonly id?: string | undefined;
  /** Default: now. */
  readonly createdAt?: string | undefined;
  /** Default: empty. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Default: absent. */
  readonly modelsUsage?: ModelUsage | undefined;
}

/** The schemas of `MessageOptions`. */
export const messageOptions: OptionSchemas<MessageOptions> = {
  source: z.string(),
  id: z.string().exactOptional(),
  createdAt: z.string().exactOptional(),
  metadata: stringsOption.exactOptional(),
  modelsUsage: objectOption<ModelUsage>([], "the tokens of a call").exactOptional(),
};

/** Fills in the common fields of a message. */
export function messageBase({ source, id, createdAt, metadata, modelsUsage }: MessageOptions): MessageBase {
  return {
    id: id ?? randomUUID(),
    source,
    createdAt: createdAt ?? new Date().toISOString(),
    metadata: { ...metadata },
    ...(modelsUsage === undefined ? {} : { modelsUsage: countedUsage(modelsUsage) }),
  };
}

/** When a service omits a count, its client may report NaN, which JSON cannot represent and which spoils sums. */
function countedUsage({ promptTokens, completionTokens }: ModelUsage): ModelUsage {
  const count = (tokens: number): number => (Number.isFinite(tokens) ? tokens : 0);
  return { promptTokens: count(promptTokens), completionTokens: count(completionTokens) };
}
