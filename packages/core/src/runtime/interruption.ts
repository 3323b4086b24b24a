/**
 * Returns a signal that Ctrl+C and SIGTERM abort; the exit code follows the shell's convention. A second one ends the
 * program at once.
 */
export function onInterruption(): AbortSignal {
  const controller = new AbortController();
  for (const [name, exitCode] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(exitCode);
      process.exitCode = exitCode;
      controller.abort();
    });
  }
  return controller.signal;
}
