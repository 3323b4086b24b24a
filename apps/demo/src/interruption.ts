/** Ends the demo on Ctrl+C and on SIGTERM. */
export class Interruption extends Error {
  /** The shell's convention: 128 plus the signal's number. */
  readonly exitCode: 130 | 143;

  constructor(signal: "SIGINT" | "SIGTERM") {
    super(signal === "SIGINT" ? "Stopped." : "Terminated.");
    this.name = "Interruption";
    this.exitCode = signal === "SIGINT" ? 130 : 143;
  }
}

/** A signal that is aborted with an `Interruption`. A second Ctrl+C ends the program at once. */
export function onInterruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
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
