import type { HarnessV1, HarnessV1Session, HarnessV1StreamPart } from "@ai-sdk/harness";

const finishReason = { unified: "stop" as const, raw: undefined };
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A harness for the AI SDK that runs each prompt as a command line and answers with its output. */
export const shellHarness: HarnessV1 = {
  specificationVersion: "harness-v1",
  harnessId: "shell",
  builtinTools: {},
  getBootstrap: () =>
    Promise.resolve({
      harnessId: "shell",
      bootstrapDir: ".harness",
      files: [{ path: ".harness/setup.sh", content: "echo set up >> log" }],
      commands: [{ command: "sh setup.sh" }],
    }),
  doStart: ({ sessionId, sandboxSession, sessionWorkDir, resumeFrom }) => {
    const state = { harnessId: "shell", specificationVersion: "harness-v1", data: {} } as const;
    const session: HarnessV1Session = {
      sessionId,
      isResume: resumeFrom !== undefined,
      doPromptTurn: ({ prompt, emit, abortSignal }) => {
        const run = async (): Promise<void> => {
          const result = await sandboxSession.run({
            command: typeof prompt === "string" ? prompt : "echo no text; exit 1",
            workingDirectory: sessionWorkDir,
            ...(abortSignal && { abortSignal }),
          });
          const parts: HarnessV1StreamPart[] = [
            { type: "stream-start" },
            { type: "text-start", id: "1" },
            { type: "text-delta", id: "1", delta: result.stdout + result.stderr },
            { type: "text-end", id: "1" },
            { type: "finish-step", finishReason, usage },
            { type: "finish", finishReason, totalUsage: usage },
          ];
          for (const part of parts) emit(part);
        };
        return Promise.resolve({ submitToolResult: () => Promise.resolve(), done: run() });
      },
      doCompact: () => Promise.resolve(),
      doContinueTurn: () => Promise.reject(new Error("no turn is left")),
      doSuspendTurn: () => Promise.reject(new Error("no turn is left")),
      doDetach: () => Promise.resolve({ ...state, type: "resume-session" as const }),
      doStop: () => Promise.resolve({ ...state, type: "resume-session" as const }),
      doDestroy: () => Promise.resolve(),
    };
    return Promise.resolve(session);
  },
};
