let warned = false;

/** Says once a process that local execution is no sandbox. */
export function warnUnsandboxed(): void {
  if (warned) return;
  warned = true;
  process.emitWarning("LocalCommandLineCodeExecutor runs code on this host, unsandboxed, as the current user.", {
    code: "FENCED_LOCAL",
    detail: "Use an executor with isolation, such as @fenced/executor-docker, for code that you do not trust.",
  });
}
