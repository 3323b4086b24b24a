// Plays the executor of another package.
export { LocalCommandLineCodeExecutor, LocalCommandLineCodeExecutor as MyExecutor } from "@fenced/executor-local";
