import type { NetworkDecision } from "@fenced/core";

/** A call of one of the `tools` that is waiting for `approveHostCall`, for a page that asks a person. */
export interface WaitingCall {
  /** The `callId` that `approveHostCall` received. */
  readonly callId: string;
  /** The function's name. */
  readonly name: string;
  /** The arguments as JSON, as `describeHostCall` shows them; longer than `maxProgressCharacters`, only head and tail. */
  readonly input: string;
}

/** The output so far: the AI SDK's preliminary result of a call in progress. */
export interface CodeExecutionRunning {
  readonly status: "running";
  /** The last part of what was printed so far, at most `maxProgressCharacters`. */
  readonly output: string;
  /** Calls that have been waiting for approval for at least `progressIntervalMs`; absent if none. */
  readonly waitingCalls?: readonly WaitingCall[];
}

/** An image that the code showed. */
export interface CodeExecutionImage {
  /** `image/png`, `image/jpeg`, `image/gif` or `image/webp`. */
  readonly mediaType: string;
  /** The image's bytes in base64. */
  readonly data: string;
}

/** How the code ended: the tool's result. */
export interface CodeExecutionFinished {
  readonly status: "finished";
  /** 0: succeeded; 124: timed out; otherwise the program's own exit code. */
  readonly exitCode: number;
  /** Standard output and standard error in order of arrival; head and tail of it if `truncated`. */
  readonly output: string;
  /** True if output was left out because of the executor's limit or `maxOutputCharacters`. */
  readonly truncated: boolean;
  /** True if the code reached its time limit and was killed. */
  readonly timedOut: boolean;
  /** True if the session had to be restarted: variables of earlier calls are gone. */
  readonly stateLost: boolean;
  /** Requests that the executor's network policy refused during the run, each with the reason; at most 50. Absent if none. */
  readonly network?: readonly NetworkDecision[];
  /** Duration of the run in milliseconds. */
  readonly durationMs: number;
  /** Images that the code showed; at most `maxImages`. */
  readonly images: readonly CodeExecutionImage[];
  /** The result in words, as the model gets it. */
  readonly text: string;
}

/** What the tool yields: plain JSON, which you can send to a browser and store with a chat. */
export type CodeExecutionOutput = CodeExecutionRunning | CodeExecutionFinished;
