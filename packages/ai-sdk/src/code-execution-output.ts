import type { NetworkDecision } from "@fenced/core";

/** A call of one of the `tools` that waits for `approveHostCall`: for a page that asks a person. */
export interface WaitingCall {
  /** The `callId` that `approveHostCall` was given. */
  readonly callId: string;
  /** The function's name. */
  readonly name: string;
  /** The arguments as `describeHostCall` shows them: JSON; of more than `maxProgressCharacters` characters head and tail. */
  readonly input: string;
}

/** What the tool put out so far: the AI SDK's preliminary result of a call that is under way. */
export interface CodeExecutionRunning {
  readonly status: "running";
  /** The last part of what was printed so far, at most `maxProgressCharacters`. */
  readonly output: string;
  /** Calls that wait for approval, for `progressIntervalMs` already; absent if none. */
  readonly waitingCalls?: readonly WaitingCall[];
}

/** An image that the code showed. */
export interface CodeExecutionImage {
  /** `image/png`, `image/jpeg`, `image/gif` or `image/webp`. */
  readonly mediaType: string;
  /** The bytes in base64. */
  readonly data: string;
}

/** How the code ended: the tool's result. */
export interface CodeExecutionFinished {
  readonly status: "finished";
  /** 0: succeeded; 124: timed out; else what the program said. */
  readonly exitCode: number;
  /** Standard output and standard error in order of arrival; head and tail of it if `truncated`. */
  readonly output: string;
  /** Some output was left out, by the executor's limit or by `maxOutputCharacters`. */
  readonly truncated: boolean;
  /** The code was ended because its time was up. */
  readonly timedOut: boolean;
  /** The session had to be restarted: variables of earlier calls are gone. */
  readonly stateLost: boolean;
  /** Requests that the executor's network policy refused meanwhile, each with the reason; at most 50. Absent if none. */
  readonly network?: readonly NetworkDecision[];
  /** Milliseconds that the code took. */
  readonly durationMs: number;
  /** What the code showed, at most `maxImages`. */
  readonly images: readonly CodeExecutionImage[];
  /** The result in words, as the model gets it. */
  readonly text: string;
}

/** What the tool yields: plain JSON, fit to be sent to a browser and to be stored with a chat. */
export type CodeExecutionOutput = CodeExecutionRunning | CodeExecutionFinished;
