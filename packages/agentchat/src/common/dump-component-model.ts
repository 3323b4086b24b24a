import { type ComponentModel, dumpComponentConfig } from "@fenced/core";

/** What the model of a component of this package is made from. */
export interface ComponentParts {
  /** The class, an export of this package. */
  readonly className: string;
  readonly componentType: string;
  /** Its options; components inside them already dumped. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/**
 * A component of this package as plain JSON.
 *
 * @throws ComponentError if a setting cannot be dumped, such as a function.
 */
export function dumpComponentModel({ className, componentType, settings }: ComponentParts): ComponentModel {
  const provider = `@fenced/agentchat:${className}`;
  return { provider, componentType, version: 1, config: dumpComponentConfig(provider, settings) };
}
