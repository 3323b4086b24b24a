import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import { checkOptions, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import { toJson } from "../common/json.ts";
import { type Memory, type MemoryContent, memoryContentSchema } from "./memory.ts";

/** Options of a `ListMemory`; all are optional. */
export interface ListMemoryOptions {
  /** Default: `"list"`. */
  readonly name?: string | undefined;
  /** What it knows from the start. Default: nothing. */
  readonly contents?: readonly MemoryContent[] | undefined;
}

const listMemoryOptions: z.ZodType<ListMemoryOptions> = optionsSchema({
  name: z.string().min(1).exactOptional(),
  contents: z.array(memoryContentSchema).exactOptional(),
} satisfies OptionSchemas<ListMemoryOptions>);
const configSchema = z.strictObject({ name: z.string().optional(), contents: z.array(memoryContentSchema).optional() });

/**
 * A memory that keeps a list, and returns all of it, oldest first. `dumpComponent` includes the list.
 *
 * @example
 * const memory = new ListMemory();
 * await memory.add({ content: "The user prefers metric units." });
 * const agent = new AssistantAgent({ name: "cook", modelClient, memory: [memory] });
 */
export class ListMemory implements Memory {
  /** How `loadComponent` creates it. */
  static readonly component: Component<ListMemory> = defineComponent({
    provider: "@fenced/agentchat:ListMemory",
    componentType: "memory",
    schema: configSchema,
    load: (options) => new ListMemory(options),
  });

  readonly name: string;
  #contents: readonly MemoryContent[];

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: ListMemoryOptions = {}) {
    const { name = "list", contents = [] } = checkOptions(listMemoryOptions, options, "ListMemory");
    this.name = name;
    this.#contents = contents;
  }

  /** Everything that it keeps, oldest first. */
  get contents(): readonly MemoryContent[] {
    return this.#contents;
  }

  async query(): Promise<readonly MemoryContent[]> {
    return this.#contents;
  }

  /** @throws InvalidInputError if a field is unknown or wrong. */
  async add(content: MemoryContent): Promise<void> {
    this.#contents = [...this.#contents, checkOptions(memoryContentSchema, content, "ListMemory.add")];
  }

  async clear(): Promise<void> {
    this.#contents = [];
  }

  dumpComponent(): ComponentModel {
    return ListMemory.component.dump({ name: this.name, contents: toJson(this.#contents) });
  }
}
