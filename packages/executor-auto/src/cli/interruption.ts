/** The reason why a command ends early. */
export class Interruption extends Error {
  /** The shell's convention: 128 plus the signal's number. */
  readonly exitCode: number;

  constructor(exitCode: number) {
    super("Stopped.");
    this.name = "Interruption";
    this.exitCode = exitCode;
  }
}

const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
const brokenPipe = 141;

/**
 * Returns a signal that aborts with an `Interruption` on Ctrl+C, on SIGTERM and when the output's reader has gone. A
 * second Ctrl+C ends this program at once.
 */
export function onInterruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGHUP", "SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(exitCodes[name]);
      controller.abort(new Interruption(exitCodes[name]));
    });
  }
  process.stdout.on("error", () => controller.abort(new Interruption(brokenPipe)));
  // Its reader may be gone; still stop executors before exiting.
  process.stderr.on("error", () => {});
  return controller.signal;
}
