export { checkCreateArguments, checkModelMessage } from "./create-arguments.ts";
export {
  callbackOption,
  checkExecuteArguments,
  codeExecutorOption,
  environmentOption,
  type ExecuteArguments,
  hostFunctionOption,
  millisecondsOption,
  modelClientOption,
  modelOutputLimits,
  objectOption,
  signalOption,
  stringsOption,
  timeLimitOption,
  type WholeNumber,
  wholeNumberOption,
} from "./option-types.ts";
export { allowedNetworkOptions, checkCredentials, networkPolicyOption } from "./network-option.ts";
export { checkOptions, optionsSchema, type OptionSchemas } from "./check-options.ts";
