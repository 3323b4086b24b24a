// Stands for the executor of somebody else's package.
export { LocalCommandLineCodeExecutor, LocalCommandLineCodeExecutor as MyExecutor } from "@fenced/executor-local";
