/** How a command-line executor runs blocks of one language: the block goes into a file, the file to a program. */
export interface LanguageCommand {
  /** The file's ending, without the dot. */
  readonly extension: string;
  /** The program and its arguments; the file's path is added at the end. */
  readonly command: readonly string[];
}
