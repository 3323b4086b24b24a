import type { FencedError } from "@fenced/core";

/** What sets the library's options here. */
const ownOptions: Readonly<Record<string, string>> = {
  docker: "DOCKER_HOST",
  host: "--host",
  image: "--image",
  outputDir: "--output",
  poolManagementEndpoint: "ACA_POOL_MANAGEMENT_ENDPOINT",
  python: "an activated virtual environment",
};

/** A message of the library, and what sets the option here that it asks to change. */
export function inOwnWords({ message, option = "" }: FencedError): string {
  const own = ownOptions[option];
  return own === undefined ? message : `${message}\nThe demo takes the option ${option} from ${own}.`;
}

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
