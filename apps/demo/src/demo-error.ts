const ownNames: readonly (readonly [RegExp, string])[] = [
  [/\w+CodeExecutor: "(image|host)"/g, "--$1"],
  [/`(image|host)`/g, "--$1"],
  [/`outputDir`/g, "--output"],
  [/`poolManagementEndpoint`|The poolManagementEndpoint(?= ")/g, "ACA_POOL_MANAGEMENT_ENDPOINT"],
  [/set the option `python` to the right one/g, "activate a virtual environment that has them"],
  // The demo finds its daemon only through the environment.
  [/(?:the )?(?:option )?`docker`,? or (?=DOCKER_HOST)/g, ""],
];

/** A message of the library, with the demo's options in place of the library's. */
export function inOwnWords(message: string): string {
  return ownNames.reduce((text, [name, own]) => text.replaceAll(name, own), message);
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
