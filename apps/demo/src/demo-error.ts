const ownNames: readonly (readonly [RegExp, string])[] = [
  [/\w+CodeExecutor: "(image|host)"/g, "--$1"],
  [/`(image|host)`/g, "--$1"],
  [/`outputDir`/g, "--output"],
  [/`poolManagementEndpoint`|The poolManagementEndpoint(?= ")/g, "ACA_POOL_MANAGEMENT_ENDPOINT"],
  [/set the option `python` to the right one/g, "activate a virtual environment that has them"],
  // The demo finds its daemon through the environment alone.
  [/(?:the )?(?:option )?`docker`,? or (?=DOCKER_HOST)/g, ""],
];

/** A message of the library, with the demo's options in place of the library's. */
export function inOwnWords(message: string): string {
  return ownNames.reduce((text, [name, own]) => text.replaceAll(name, own), message);
}

/** What ends the demo with a message for its user and no stack trace. */
export class DemoError extends Error {
  /** 2: the command line cannot be right; 1: it went wrong on the way. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2) {
    super(message);
    this.name = "DemoError";
    this.exitCode = exitCode;
  }
}
