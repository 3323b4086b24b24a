import type { ComponentModel, JsonObject } from "@fenced/core";
import { objectOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import { jsonObjectSchema } from "../common/json.ts";
import type { SignalOptions } from "../common/signal-option.ts";

/** Something that a memory keeps. */
export interface MemoryContent {
  /** Text; JSON as text if `mimeType` says so. */
  readonly content: string;
  /** Default: `text/plain`. */
  readonly mimeType?: "text/plain" | "text/markdown" | "application/json" | undefined;
  /** For your own programs; no model sees it. Default: none. */
  readonly metadata?: JsonObject | undefined;
}

/**
 * What an agent knows besides the conversation: preferences of a user, documents, results of earlier work. An `AssistantAgent`
 * asks its memories once in each turn, and tells its model what they return. Implement it over a database or an index.
 */
export interface Memory {
  /** For events and errors. */
  readonly name: string;

  /**
   * Returns what matters for a turn, the most important first. An error ends the turn.
   *
   * @param text - what the agent was told last; empty if it was told nothing new.
   */
  query(text: string, options?: SignalOptions): Promise<readonly MemoryContent[]>;

  /** Keeps something. */
  add(content: MemoryContent, options?: SignalOptions): Promise<void>;

  /** Forgets everything. */
  clear(): Promise<void>;

  /** Returns the settings as plain JSON. Without it, an agent with this memory cannot be dumped. */
  dumpComponent?(): ComponentModel;
}

/** The schema of what a memory keeps. */
export const memoryContentSchema: z.ZodType<MemoryContent> = optionsSchema({
  content: z.string(),
  mimeType: z.enum(["text/plain", "text/markdown", "application/json"]).exactOptional(),
  metadata: jsonObjectSchema.exactOptional(),
} satisfies OptionSchemas<MemoryContent>);

/** The schema of an option that takes a memory; passed through, not copied. */
export const memoryOption: z.ZodType<Memory> = objectOption<Memory>(["query", "add"], "a memory");
