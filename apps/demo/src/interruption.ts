/** What the demo ends with when someone presses Ctrl+C or sends SIGTERM. */
export class Interruption extends Error {
  /** The shell's convention: 128 and the signal's number. */
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
  return controller.signal;
}
