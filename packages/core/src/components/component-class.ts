import type { SessionToConnect } from "../execution/session-handle.ts";
import type { JsonObject } from "../json-value.ts";
import type { ComponentModel } from "./component-model.ts";

/** Controls which packages `loadComponent` may import, and how. */
export interface LoadComponentOptions {
  /**
   * Packages outside the `@fenced/` scope that may be imported, spelled as in the provider. Default: none. Importing a
   * package runs its code, so name only what you would install yourself.
   */
  readonly allow?: readonly string[] | undefined;
  /**
   * Imports a package. Default: `import()`, resolved from this package, the program's main script or its working
   * directory.
   */
  readonly importModule?: ((specifier: string) => Promise<unknown>) | undefined;
}

/** What a component's `fromConfig` receives besides its config. */
export interface ComponentContext {
  /** The provider that is being loaded, for error messages. */
  readonly provider: string;

  /**
   * Loads a component nested in the config, with the options of the outermost `loadComponent`.
   *
   * @param path - its position in the config, for error messages: `"participants[1]"`.
   * @throws ComponentError as `loadComponent` does.
   */
  load<T>(model: ComponentModel, path?: string): Promise<T>;
}

/**
 * What `loadComponent` can load: the export that `provider` names either has a static field `component` of this type,
 * made by `defineComponent`, or has these fields itself.
 *
 * @example
 * const configSchema = z.strictObject({ maxMessages: z.int().positive() });
 *
 * export class MaxMessageTermination {
 *   static readonly componentType = "termination";
 *   static readonly componentVersion = 1;
 *   static fromConfig(config: JsonObject, context: ComponentContext): MaxMessageTermination {
 *     return new MaxMessageTermination(parseComponentConfig(configSchema, config, context.provider).maxMessages);
 *   }
 * }
 */
export interface ComponentClass<T> {
  /** The `ComponentModel.componentType` that the class is written for. Checked if declared. */
  readonly componentType?: string;
  /** The `ComponentModel.version` that the class is written for. Checked if declared. */
  readonly componentVersion?: number;

  /**
   * Creates the component from its config, which it must validate (see `parseComponentConfig`).
   *
   * @throws ComponentError if the config is invalid.
   */
  fromConfig(config: JsonObject, context: ComponentContext): T | Promise<T>;

  /**
   * Creates an executor that connects to a session that another one has left, see `connectExecutor`. Default: its
   * sessions end with their programs.
   *
   * @throws ComponentError if the config or the session's data are invalid.
   */
  connect?(config: JsonObject, session: SessionToConnect, context: ComponentContext): T | Promise<T>;
}
