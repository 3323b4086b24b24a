/** What sets the library's options here. */
export const ownNames: Readonly<Record<string, string>> = {
  docker: "DOCKER_HOST",
  host: "--host",
  image: "--image",
  outputDir: "--output",
  poolManagementEndpoint: "ACA_POOL_MANAGEMENT_ENDPOINT",
  python: "an active virtual environment",
};

/** Ends the demo with a message for the user and no stack trace. */
export class DemoError extends Error {
  /** 2: the command line is wrong; 1: something failed later. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2) {
    super(message);
    this.name = "DemoError";
    this.exitCode = exitCode;
  }
}
