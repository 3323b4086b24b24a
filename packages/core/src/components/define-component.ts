import type * as z from "zod";
import type { SessionToConnect } from "../execution/session-handle.ts";
import type { JsonObject } from "../json-value.ts";
import type { ComponentClass, ComponentContext } from "./component-class.ts";
import type { ComponentModel } from "./component-model.ts";
import { dumpComponentConfig, type DumpComponentConfigOptions } from "./dump-component-config.ts";
import { parseComponentConfig } from "./parse-component-config.ts";

/** The definition of a component, for `defineComponent`. */
export interface ComponentDefinition<T, Config> extends DumpComponentConfigOptions {
  /** The package and its export: `"@fenced/agentchat:MaxMessageTermination"`. */
  readonly provider: string;
  /** See `ComponentModel.componentType`. */
  readonly componentType: string;
  /** See `ComponentModel.version`. Default: 1. */
  readonly version?: number;
  /** The schema of the config. Use `z.strictObject`, so that a misspelled key is an error. */
  readonly schema: z.ZodType<Config>;
  /** Creates the component from its validated config. */
  readonly load: (config: Config, context: ComponentContext) => T | Promise<T>;
  /** Creates an executor that connects to a session, from the config in its handle. Default: not possible. */
  readonly connect?: (config: Config, session: SessionToConnect) => T | Promise<T>;
}

/** Loads a component from its `ComponentModel`, and dumps it to one. */
export interface Component<T> extends ComponentClass<T> {
  readonly componentType: string;
  readonly componentVersion: number;

  /**
   * Returns the model of a component with these settings. Dump the components nested in it first.
   *
   * @throws ComponentError if a setting is a secret, or cannot be dumped (a function, for example).
   */
  dump(settings: Readonly<Record<string, unknown>>): ComponentModel;
}

/**
 * Defines how a class is dumped and loaded. The class keeps the result in its static field `component`, and calls
 * `dump` in its `dumpComponent()`.
 *
 * @example
 * class MaxMessageTermination {
 *   static readonly component: Component<MaxMessageTermination> = defineComponent({
 *     provider: "@fenced/agentchat:MaxMessageTermination",
 *     componentType: "termination",
 *     schema: z.strictObject({ maxMessages: z.int().positive() }),
 *     load: ({ maxMessages }) => new MaxMessageTermination(maxMessages),
 *   });
 *
 *   dumpComponent(): ComponentModel {
 *     return MaxMessageTermination.component.dump({ maxMessages: this.#maxMessages });
 *   }
 * }
 */
export function defineComponent<T, Config>(definition: ComponentDefinition<T, Config>): Component<T> {
  const { provider, componentType, version = 1, schema, load, connect, secrets = [] } = definition;
  const parse = (config: JsonObject, context: ComponentContext): Config =>
    parseComponentConfig(schema, config, context.provider);
  return {
    componentType,
    componentVersion: version,
    fromConfig: (config: JsonObject, context) => load(parse(config, context), context),
    ...(connect && { connect: (config, session, context) => connect(parse(config, context), session) }),
    dump: (settings) => {
      const config = dumpComponentConfig(provider, settings, { secrets });
      return { provider, componentType, version, config };
    },
  };
}
