const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** Ends the demo on Ctrl+C, on SIGTERM, and when its terminal closes. */
export class Interruption extends Error {
  /** The shell's convention: 128 plus the signal's number. */
  readonly exitCode: number;

  constructor(signal: keyof typeof exitCodes) {
    super(signal === "SIGINT" ? "Stopped." : "Terminated.");
    this.name = "Interruption";
    this.exitCode = exitCodes[signal];
  }
}

/** A signal that is aborted with an `Interruption`. A second Ctrl+C ends the program at once. */
export function onInterruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGHUP", "SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      const interruption = new Interruption(name);
      if (controller.signal.aborted) process.exit(interruption.exitCode);
      controller.abort(interruption);
    });
  }
  // `npm run demo | head` closes the pipe. Without a listener that would end the program before it cleans up.
  for (const output of [process.stdout, process.stderr]) output.on("error", (error) => controller.abort(error));
  return controller.signal;
}
