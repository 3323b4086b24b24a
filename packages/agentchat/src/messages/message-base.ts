import { randomUUID } from "node:crypto";
import type { ModelUsage } from "@fenced/core";
import { objectOption, type OptionSchemas, stringsOption } from "@fenced/core/options";
import * as z from "zod";

/** What all messages and events have. They are plain JSON and survive `JSON.parse(JSON.stringify(message))`. */
export interface MessageBase {
  /** A UUID. */
  readonly id: string;
  /** The name of the agent or person that it comes from. */
  readonly source: string;
  /** When it was made: an ISO 8601 time, e.g. `"2026-11-20T18:44:00.000Z"`. */
  readonly createdAt: string;
  /** Notes for programs, e.g. `exitCode` on the answers of a `CodeExecutorAgent`. Models do not see them. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The tokens of the model call that made this message, and of no other. */
  readonly modelsUsage?: ModelUsage;
}

/** The common fields that the maker of a message chooses. */
export interface MessageOptions {
  /** The name of the agent or person that it comes from. */
  readonly source: string;
  /** Default: a new UUID. */
  readonly id?: string;
  /** Default: now. */
  readonly createdAt?: string;
  /** Default: empty. */
  readonly metadata?: Readonly<Record<string, string>>;
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

/** Services leave numbers out, of which their clients make NaN: no number that JSON has, and no sum. */
function countedUsage({ promptTokens, completionTokens }: ModelUsage): ModelUsage {
  const count = (tokens: number): number => (Number.isFinite(tokens) ? tokens : 0);
  return { promptTokens: count(promptTokens), completionTokens: count(completionTokens) };
}
