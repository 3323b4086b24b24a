import * as z from "zod";
import { describeIssues } from "../describe-issues.ts";
import { ComponentError } from "../errors/component-error.ts";
import { FencedError } from "../errors/fenced-error.ts";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import type { JsonObject } from "../json-value.ts";
import { checkOptions, optionsSchema, type OptionSchemas, callbackOption } from "../options/check-options.ts";
import { fieldRequirement } from "../options/requirement.ts";
import type { ComponentClass, ComponentContext, LoadComponentOptions } from "./component-class.ts";
import { componentModelSchema } from "./component-model-schema.ts";
import type { ComponentModel } from "./component-model.ts";
import { importPackage } from "./import-package.ts";
import { parseProvider } from "./parse-provider.ts";

/** The schemas of these options. */
export const loadComponentSchemas: OptionSchemas<LoadComponentOptions> = {
  allow: z.array(z.string()).exactOptional(),
  importModule: callbackOption<(specifier: string) => Promise<unknown>>().exactOptional(),
};

const loadComponentOptions: z.ZodType<LoadComponentOptions> = optionsSchema(loadComponentSchemas);

/**
 * Creates the component that a model describes, and the components nested in it. The provider's package is imported
 * only if it is `@fenced/<name>` or listed in `options.allow`, so a config file cannot load arbitrary code.
 *
 * `T` is not checked: make sure that the provider creates such a component.
 *
 * @throws ComponentError if the model or its config is invalid, or its package is not allowed, not installed or has no
 * such component. The message names the path of the value.
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * const executor = await loadComponent<CodeExecutor>(JSON.parse(await readFile("executor.json", "utf8")));
 */
export async function loadComponent<T>(model: ComponentModel, options: LoadComponentOptions = {}): Promise<T> {
  const checked = checkOptions(loadComponentOptions, options, "loadComponent");
  return useComponent<T>(model, checked, (component, config, context) => component.fromConfig(config, context));
}

/**
 * Finds what a model names, and creates it with `create`.
 *
 * @throws ComponentError as `loadComponent` does.
 */
export async function useComponent<T>(
  model: ComponentModel,
  options: LoadComponentOptions,
  create: (component: ComponentClass<T>, config: JsonObject, context: ComponentContext) => T | Promise<T>,
): Promise<T> {
  const { provider, componentType, version, config } = parseModel(model);
  const { specifier, exportName } = parseProvider(provider, options.allow ?? []);
  const module = await importPackage(specifier, options.importModule);
  const component = componentExport<T>(module, exportName, provider);
  assertDeclared(provider, "componentType", component.componentType, componentType);
  assertDeclared(provider, "version", component.componentVersion, version);
  const context: ComponentContext = {
    provider,
    load: (nested, path) => loadNested(nested, provider, path, options),
  };
  try {
    return await create(component, config, context);
  } catch (error) {
    throw asComponentError(error, provider);
  }
}

function parseModel(model: unknown): ComponentModel {
  const parsed = componentModelSchema.safeParse(model, { error: fieldRequirement });
  if (parsed.success) return parsed.data;
  throw new ComponentError(`This is not a component: ${describeIssues(parsed.error)}`, {
    remedy: "Pass what dumpComponent returned: provider, componentType, version, config.",
    cause: parsed.error,
  });
}

function componentExport<T>(module: unknown, exportName: string, provider: string): ComponentClass<T> {
  const exported: unknown =
    typeof module === "object" && module !== null && Object.hasOwn(module, exportName)
      ? Reflect.get(module, exportName)
      : undefined;
  const defined: unknown = typeof exported === "function" ? Reflect.get(exported, "component") : undefined;
  if (isComponentClass<T>(defined)) return defined;
  if (typeof exported === "function" && isComponentClass<T>(exported)) return exported;
  const problem =
    exported === undefined
      ? "does not exist"
      : "has neither a static component nor fromConfig, so it is not a component";
  throw new ComponentError(`The export ${provider} ${problem}`, {
    remedy: "Check the export's name, and that the installed version of the package has it.",
  });
}

function isComponentClass<T>(value: unknown): value is ComponentClass<T> {
  const mayHave = typeof value === "function" || (typeof value === "object" && value !== null);
  return mayHave && "fromConfig" in value && typeof value.fromConfig === "function";
}

function assertDeclared(provider: string, key: string, declared: unknown, given: unknown): void {
  if (declared === undefined || declared === given) return;
  const [wanted, found] = [JSON.stringify(declared), JSON.stringify(given)];
  throw new ComponentError(`${provider} supports ${key} ${wanted}, but the component says ${found}`, {
    remedy: "Dump the component again with the installed version of its package.",
  });
}

async function loadNested<T>(
  model: ComponentModel,
  outer: string,
  path: string | undefined,
  options: LoadComponentOptions,
): Promise<T> {
  try {
    return await loadComponent<T>(model, options);
  } catch (error) {
    if (path === undefined || !ComponentError.isInstance(error)) throw error;
    const { message, remedy, option } = error;
    const problem = message.slice(0, -remedy.length);
    const whatToDo = { remedy, ...(option === undefined ? {} : { option }) };
    throw new ComponentError(`At ${path} of ${outer}: ${problem}`, { ...whatToDo, cause: error });
  }
}

function asComponentError(error: unknown, provider: string): FencedError {
  const isVerdict = FencedError.isInstance(error) && !InvalidInputError.isInstance(error);
  if (isVerdict) return error;
  return new ComponentError(`The config of ${provider} is not valid: ${reasonOf(error)}`, {
    remedy: "Fix the config: it must have the shape that dumpComponent() of the same component returns.",
    cause: error,
  });
}

function reasonOf(error: unknown): string {
  if (error instanceof z.core.$ZodError) return describeIssues(error);
  return error instanceof Error ? error.message : String(error);
}
