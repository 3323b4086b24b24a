export { codeExecutionTool } from "./code-execution-tool.ts";
export type { CodeExecutionToolOptions } from "./code-execution-tool-options.ts";
export type {
  CodeExecutionFinished,
  CodeExecutionImage,
  CodeExecutionOutput,
  CodeExecutionRunning,
  WaitingCall,
} from "./code-execution-output.ts";
