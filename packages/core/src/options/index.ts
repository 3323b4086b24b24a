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
  checkOptions,
  type GivenOptions,
  optionsSchema,
  type OptionSchemas,
} from "./check-options.ts";
export { allowedNetworkOptions, checkCredentials, networkPolicyOption } from "./network-option.ts";
export { recordOption } from "./record-option.ts";
