/** A message that names options: an error, or a text that is not about a single option. */
interface Message {
  readonly message: string;
  readonly option?: string;
}

/**
 * A message of the library in the words of a program that calls its options something else, such as a command line:
 * `` `workDir` `` becomes `--work-dir`, and `` `network: "open"` `` becomes `--network open`.
 *
 * @param message - a `FencedError`. The option that it is about is also replaced in double quotes.
 * @param names - what the program calls each option that it has.
 *
 * @example
 * if (FencedError.isInstance(error)) console.error(inOwnWords(error, { workDir: "--work-dir", docker: "DOCKER_HOST" }));
 */
export function inOwnWords({ message, option }: Message, names: Readonly<Record<string, string>>): string {
  let text = message;
  for (const [name, own] of Object.entries(names)) {
    // `SshCommandLineCodeExecutor: "host"`, or the option `docker`
    const quote = name === option ? '["`]' : "`";
    const mention = `(?:\\w+: )?(?:(?:the option|The) )?${quote}${name}(?:[.[][^"\`]*)?${quote}`;
    text = text
      .replaceAll(new RegExp(`${mention},? or (?=${own})`, "g"), "")
      .replaceAll(new RegExp(mention, "g"), own)
      .replaceAll(new RegExp(`\`${name}: "?([^\`"]*)"?\``, "g"), (_, value: string) => `${own} ${value}`);
  }
  return text;
}
