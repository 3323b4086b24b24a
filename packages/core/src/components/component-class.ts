import type { JsonObject } from "../json-value.ts";
import type { ComponentModel } from "./component-model.ts";

/** How `loadComponent` may get at the packages that a component model names. */
export interface LoadComponentOptions {
  /**
   * Packages outside the `@fenced/` scope that may be imported, exactly as providers name them. Default: none. Importing
   * a package runs its code, so name only what you would install yourself.
   */
  readonly allow?: readonly string[];
  /** Imports a package. Default: `import()`, from this package, the program's main script or its working directory. */
  readonly importModule?: (specifier: string) => Promise<unknown>;
}

/** What a component's `fromConfig` gets besides its config. */
export interface ComponentContext {
  /** The provider that is being loaded, for error messages. */
  readonly provider: string;

  /**
   * Loads a component that stands inside the config, with the options of the outermost `loadComponent`.
   *
   * @param path - where in the config it stands, for error messages: `"participants[1]"`.
   * @throws ComponentError as `loadComponent` does.
   */
  load<T>(model: ComponentModel, path?: string): Promise<T>;
}

/**
 * The convention for what `loadComponent` can make: the export that `provider` names has this as its static field
 * `component`, which `defineComponent` makes, or has these fields itself.
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
   * Makes the component from its config, which it must validate (see `parseComponentConfig`).
   *
   * @throws ComponentError if the config has another shape.
   */
  fromConfig(config: JsonObject, context: ComponentContext): T | Promise<T>;
}
