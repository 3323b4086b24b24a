import type { ConformanceCase, ConformanceGroup } from "./conformance-case.ts";

/** Which cases of the suite run: see `SuiteOptions.cases`. */
export type CaseSelection = "all" | "place" | "smoke";

/**
 * Cases that a place passes if it passes the others. Only objects that `executor-kit` shares between executors decide them, or
 * another case takes the same way through the place. They run on one executor, which shows that the objects are right.
 */
const decidedByTheKit: Readonly<Record<string, readonly string[]>> = {
  blocks: [
    "stops at the first block that fails",
    "throws InvalidInputError when there are no blocks",
    "does not modify the caller's blocks and options",
  ],
  options: ["that are undefined count as not given", "and arguments of a call are checked before anything runs"],
  languages: [
    "accepts the other names of python, in any case",
    "accepts the other names of javascript, in any case",
    "accepts the other names of bash, in any case",
    "accepts the other names of sh, in any case",
    "fails a block in an unknown language with exit code 1 and lists the known ones",
    "treats an empty or odd language name as unknown",
  ],
  output: [
    "keeps the head and tail of output over the limit, and marks the cut with its size",
    "applies the same limit to standard error",
    "does not cut output that is exactly as long as the limit",
    "applies the limit to all blocks of a run together",
    "cuts between characters",
    "throws InvalidInputError for an invalid limit",
    "keeps a mebibyte by default",
    "streams what the result leaves out",
  ],
  encoding: [
    "keeps a byte order mark",
    "joins a character that is split across two writes",
    "replaces an incomplete character within the output",
    "replaces an incomplete character at the end of the output",
  ],
  stream: [
    "brackets each block and ends with exactly one result",
    "returns the same result as executeCodeBlocks",
    "runs nothing before the first event is requested",
    "kills the program when the loop throws, and passes the error on",
    "ends at once when return() is called while an event is awaited",
    "runs nothing if it is closed before the first event",
    "ends the program if the consumer leaves at the first event",
  ],
  "stream that nobody reads": ["ends when it is aborted", "does not keep restart() from ending"],
  runs: [
    "go on without a reader, and replay their events from any position",
    "are the same under the same id, and never executed twice",
    "are refused if there is nothing to run, or an option is wrong",
  ],
  timeout: [
    "totalTimeoutMs ends the call and keeps the results so far",
    "totalTimeoutMs covers all blocks of a call, and a call can override it",
    "totalTimeoutMs includes the wait for the start",
    "applies to each block separately",
    "can be set for one call, shorter or longer than the executor's",
    "may expire before the program has started",
    "must be a positive number",
  ],
  abort: [
    "before the call: nothing runs and the call rejects with the reason",
    "during a stream: the output so far arrives, then the stream rejects without a result event",
    "ends a process that the block started (child)",
    "ends a process that the block started (double-fork)",
    "ends a process that the block started (no-environment)",
    "between two blocks: the second does not run",
    "while the call waits for its turn: rejects at once, and the running call continues",
    "leaves an earlier block's background process running",
    "after the end: has no effect, and no listener stays on the signal",
  ],
  "background processes": [
    "a process that a block leaves running lives until restart() (child)",
    "a process that a block leaves running is dead after stop() (child)",
    "a process that a block leaves running is dead after stop() (double-fork)",
  ],
  processes: [
    "`processes` exists if and only if `capabilities.processes` is true",
    "wait() needs no reader for short output, which can be read later",
    "invalid options throw an InvalidInputError that names them",
  ],
  concurrency: ["keeps the blocks of one call together", "runs the other calls when some of them fail"],
  "life cycle": [
    "start() can be called repeatedly and concurrently",
    "simultaneous first calls share one session",
    "stop() is harmless without start(), repeatedly and concurrently",
    "after stop() every call rejects with ExecutorStoppedError and creates nothing",
    "after stop() without start(), calls do not start the executor",
    "stop() rejects calls that wait for the start, which then create nothing",
    "after [Symbol.asyncDispose]() nothing starts the executor again",
    "stop() also rejects calls that wait for their turn",
    "stop() rejects all concurrent calls",
    "await using stops the executor",
  ],
  files: [
    "writes only the bytes of a view, and text as UTF-8",
    "uploads files under their own names",
    "uploads nothing if one of the files is missing",
  ],
  "file streams": ["readStream() fails like read(), for invalid ranges, and with the reason of its signal"],
  filename: [
    "saves a javascript block under its filename, so that later blocks can import it",
    "saves a bash block under its filename, so that later blocks can import it",
    "saves a sh block under its filename, so that later blocks can import it",
    "understands a first line that ends with CRLF",
    "keeps the file when the block fails",
    "fails a block whose filename leads out of the workspace (parent directory)",
    "fails a block whose filename leads out of the workspace (parent directory in the middle)",
    "fails a block whose filename leads out of the workspace (absolute)",
  ],
  workspace: ["refuses paths that lead out", "allows names that only look like a way out"],
  "python functions": [
    "are imported from a module of another name",
    "may be async and decorated",
    "see their global imports",
    "keep their source character for character",
    "with a syntax error throw FunctionSetupError with Python's message",
    "are available to simultaneous first calls",
    "take set-up time that does not count towards the blocks' timeout",
  ],
  "javascript functions": [
    "are imported from a module of another name",
    "may be async",
    "see their global imports",
    "are available after restart()",
  ],
  "function prompt": [
    "is empty when there are no functions",
    "shows the module, signatures and docstrings, and no bodies",
    "fills in the placeholders of a template and leaves the rest unchanged",
    "is the same before and after start()",
    "throws InvalidInputError for a module name that is not an identifier",
    "throws InvalidInputError for two functions of the same name",
  ],
  "host functions": [
    "are in a module with another name, which is also the name of the shell command",
    "reject invalid arguments with an exception that names the field, and do not run",
    "that throw raise an exception with the name and the message, but no stack trace or host paths",
    "appear as events in the stream, each result after its call",
    "wait for approval, which sees the arguments and gives the program its reason",
    "with their own `approve` are asked after the executor, and both see `needsApproval`",
    "are described to the model with their types, in each language that can call them",
    "raise an exception after `maxHostCalls` calls in a block; the next block counts from zero",
    "are aborted when the block times out, and the stream has one result event for the call",
    "are aborted when a task gives up on them, and other calls still work",
    "refuse a forged token and the token of a block that has ended",
    "survive forged frames, which end only their own connection",
  ],
  component: ["is dumped the same before and after start()"],
  leaks: [
    "nothing remains after the program dies of SIGTERM",
    "nothing remains after the program dies of SIGINT",
    "nothing remains after the program dies of an uncaught error",
  ],
};

/** One or two cases of each group that show that a mechanism works in a place at all. */
const smoke: Readonly<Record<string, readonly string[]>> = {
  blocks: ["runs blocks in order"],
  languages: ["runs python"],
  code: ["runs code with quotes, backslashes and unicode"],
  output: ["separates standard output from standard error, and combines both in order"],
  encoding: ["joins a character whose bytes are written one by one"],
  "standard input": ["is empty by default for a program that reads all of it", "passes the call's text to the program"],
  environment: ["sets the executor's variables and the call's, which override the executor's"],
  stream: ["delivers output while the program runs"],
  "stream that nobody reads": ["pauses the program and buffers little of its output"],
  runs: ["end with everything that they started when they are cancelled"],
  timeout: ["ends a process that the block started (new-session)"],
  abort: ["during executeCodeBlocks: rejects with the reason once every process is dead"],
  "background processes": ["a process that a block leaves running lives until restart() (new-session)"],
  processes: ["runs a program with unchanged arguments, and a command line in a shell"],
  concurrency: ["never mixes the output of 20 simultaneous calls"],
  state: ["variables survive from block to block and from call to call", "variables do not survive a block"],
  "life cycle": ["restart() clears variables and keeps files", "an executor can be started again after stop()"],
  "lost session": ["is reported by the interrupted call's result or by the next one"],
  "network policy": ["lets code talk to the listed hosts, by names that only the policy resolves"],
  files: ["reads back every byte as it was written", "shares files with the code in both directions"],
  "file streams": ["readStream() reads a whole file or any part of it"],
  filename: ["saves a python block under its filename, so that later blocks can import it"],
  workspace: ["is separate for each executor, and deleted by stop()"],
  "hostile files": ["a block that replaces its own program with a directory keeps its result"],
  "python functions": ["are imported from the module `functions`"],
  "javascript functions": ["are imported from the module `functions`"],
  "host functions": ["take and return JSON values of every kind", "are aborted when the executor's call is aborted"],
  displays: ["contain a picture's bytes", "of all blocks are in the result"],
  component: ["keeps its settings when loaded"],
  leaks: ["nothing remains after the program dies of SIGKILL"],
};

/** Every name in the two lists above, as `group > case`. A test compares them with the suite. */
export function listedCases(): string[] {
  return [decidedByTheKit, smoke].flatMap((list) =>
    Object.entries(list).flatMap(([group, names]) => names.map((name) => `${group} > ${name}`)),
  );
}

/** The cases of a group that run. */
export function selectedCases({ name, cases }: ConformanceGroup, selection: CaseSelection): readonly ConformanceCase[] {
  if (selection === "all") return cases;
  if (selection === "smoke") return cases.filter((each) => smoke[name]?.includes(each.name) === true);
  return cases.filter((each) => decidedByTheKit[name]?.includes(each.name) !== true);
}
