import type { FencedError } from "@fenced/core";

/** What sets the library's options here. */
const ownNames: Readonly<Record<string, string>> = {
  docker: "DOCKER_HOST",
  host: "--host",
  image: "--image",
  outputDir: "--output",
  poolManagementEndpoint: "ACA_POOL_MANAGEMENT_ENDPOINT",
  python: "an active virtual environment",
};

/** A message of the library, with the demo's name for the option that it asks to change. */
export function inOwnWords({ message, option = "" }: FencedError): string {
  const own = ownNames[option];
  if (own === undefined) return message;
  // `SshCommandLineCodeExecutor: "host"`, or the option `docker`
  const name = `(?:\\w+: |(?:the option|The) )?["\`]${option}["\`]`;
  return message.replaceAll(new RegExp(`${name},? or (?=${own})`, "g"), "").replaceAll(new RegExp(name, "g"), own);
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
