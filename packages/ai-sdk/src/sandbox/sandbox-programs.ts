import { BoundedOutput, ByteQueue, InvalidInputError, type ExecutorProcesses } from "@fenced/core";

/** The exit code of the programs below if nothing exists at the path. */
const missing = 44;
const refuse = (what: string) => `{ echo "$1 ${what}" >&2; exit 1; }`;
const ifMissing = (test: string) => `${test} || exit ${missing}`;

/** Shell programs with a path as their first argument; only this module reads their output. */
export const programs: Readonly<Record<"read" | "write" | "append" | "discard" | "stat" | "list" | "delete", string>> =
  {
    // The first byte shows that the file is open.
    read: `${ifMissing('[ -e "$1" ]')}; [ ! -d "$1" ] || ${refuse("is a directory")}
[ -f "$1" ] || ${refuse("is not a regular file")}; exec 3<"$1" || exit 1; printf +; exec cat <&3`,
    // An existing file stays the same file, with its mode. "$2": the file with the content; empty if it is on standard input.
    write: `[ ! -d "$1" ] || ${refuse("is a directory")}
case $1 in */*) mkdir -p -- "\${1%/*}/" || exit 1 ;; esac
if [ -z "$2" ]; then exec cat >"$1"; fi; cat <"$2" >"$1"; code=$?; rm -f -- "$2"; exit "$code"`,
    append: `case $1 in */*) mkdir -p -- "\${1%/*}/" || exit 1 ;; esac; exec cat >>"$1"`,
    discard: `exec rm -f -- "$1"`,
    stat: `${ifMissing('[ -e "$1" ]')}; [ ! -d "$1" ] || { printf "directory 0"; exit; }
[ -f "$1" ] || { printf "other 0"; exit; }
printf "file "; stat -Lc %s -- "$1" 2>/dev/null || stat -Lf %z -- "$1" 2>/dev/null || wc -c <"$1"`,
    list: `${ifMissing('[ -e "$1" ]')}; [ -d "$1" ] || ${refuse("is not a directory")}
cd -- "$1" || exit 1
for name in * .[!.]* ..?*; do
  if [ -L "$name" ]; then type=symlink; elif [ -d "$name" ]; then type=directory
  elif [ -f "$name" ]; then type=file; elif [ -e "$name" ]; then type=other; else continue; fi
  printf "%s %s\\0" "$type" "$name"
done`,
    delete: `${ifMissing('[ -L "$1" ] || [ -e "$1" ]')}
[ -L "$1" ] || [ ! -d "$1" ] || ${refuse("is a directory")}; exec rm -f -- "$1"`,
  };

/** A program to run on one path. */
export interface FileProgram {
  readonly program: string;
  readonly path: string;
  /** Its second argument. Default: empty. */
  readonly other?: string;
  readonly stdin?: Uint8Array;
  readonly signal?: AbortSignal | undefined;
}

/** Maximum bytes to keep of an error message. */
const mostErrorBytes = 4096;

/** Turns a path into an argument that no program mistakes for an option. */
function argument(path: string): string {
  if (path !== "") return path.startsWith("/") ? path : `./${path}`;
  throw new InvalidInputError("The path is empty", { remedy: 'Name a file, or "." for the workspace.' });
}

/**
 * Runs a program on a path and streams its output.
 *
 * @returns the output, which throws if the program fails.
 */
export async function startFileProgram(
  processes: ExecutorProcesses,
  { program, path, other = "", stdin, signal }: FileProgram,
): Promise<AsyncGenerator<Uint8Array, "done" | "missing", void>> {
  const started = await processes.start({
    command: ["/bin/sh", "-c", program, "fenced", argument(path), other],
    ...(stdin === undefined ? {} : { stdin }),
    ...(signal === undefined ? {} : { signal }),
  });
  async function* output(): AsyncGenerator<Uint8Array, "done" | "missing", void> {
    // Leaving the loop early kills the program.
    await using running = started;
    const said = BoundedOutput.read(running.stderr, mostErrorBytes);
    yield* running.stdout;
    const { exitCode } = await running.wait();
    if (exitCode === missing) return "missing";
    if (exitCode === 0) return "done";
    const sentence = (await said).trim() || `the operation failed with exit code ${exitCode}`;
    throw new InvalidInputError(`${JSON.stringify(path)} in the sandbox: ${sentence}`, {
      remedy: "Check the path and its permissions where the code runs.",
    });
  }
  return output();
}

/**
 * Does the same for output that fits into memory.
 *
 * @returns `undefined` if nothing exists at the path.
 */
export async function runFileProgram(
  processes: ExecutorProcesses,
  program: FileProgram,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const output = await startFileProgram(processes, program);
  const bytes = new ByteQueue();
  for (;;) {
    const { value, done } = await output.next();
    if (done === true) return value === "missing" ? undefined : Buffer.from(bytes.take().buffer);
    bytes.add(value);
    if (bytes.length <= maxBytes) continue;
    await output.return("done");
    throw new InvalidInputError(`${JSON.stringify(program.path)} has more than ${maxBytes} bytes`, {
      remedy: "Read it as a stream with readFile(), or read part of it with a command.",
    });
  }
}
