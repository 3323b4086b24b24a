import type { HarnessV1, HarnessV1Session, HarnessV1StreamPart } from "@ai-sdk/harness";

const finishReason = { unified: "stop" as const, raw: undefined };
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const kept = { type: "resume-session", harnessId: "shell", specificationVersion: "harness-v1", data: {} } as const;

/** Takes the place of a real agent runtime: runs each prompt as a command line, and answers with its output. */
export const shellHarness: HarnessV1 = {
  specificationVersion: "harness-v1",
  harnessId: "shell",
  builtinTools: {},
  doStart: async ({ sessionId, sandboxSession, sessionWorkDir, resumeFrom }) => {
    const answer = async (command: string, abortSignal: AbortSignal | undefined): Promise<HarnessV1StreamPart[]> => {
      const options = { command, workingDirectory: sessionWorkDir, ...(abortSignal && { abortSignal }) };
      const { stdout, stderr } = await sandboxSession.run(options);
      return [
        { type: "stream-start" },
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: stdout + stderr },
        { type: "text-end", id: "1" },
        { type: "finish-step", finishReason, usage },
        { type: "finish", finishReason, totalUsage: usage },
      ];
    };
    const session: HarnessV1Session = {
      sessionId,
      isResume: resumeFrom !== undefined,
      doPromptTurn: async ({ prompt, emit, abortSignal }) => {
        const done = answer(typeof prompt === "string" ? prompt : "exit 1", abortSignal).then((parts) => {
          for (const part of parts) emit(part);
        });
        return { submitToolResult: async () => {}, done };
      },
      doCompact: async () => {},
      doContinueTurn: () => Promise.reject(new Error("no turn is left")),
      doSuspendTurn: () => Promise.reject(new Error("no turn is left")),
      doDetach: async () => kept,
      doStop: async () => kept,
      doDestroy: async () => {},
    };
    return session;
  },
};
