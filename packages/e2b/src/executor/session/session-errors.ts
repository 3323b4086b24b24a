import { BackendUnavailableError } from "@fenced/core";
import type { SandboxState } from "../service/control-client.ts";

/** The error for a sandbox in which no session can be started. */
export function cannotRun(reason: string): BackendUnavailableError {
  return new BackendUnavailableError(`The sandbox cannot run code: ${reason}`, {
    remedy:
      "Use a template that has `sh` and Python 3.8 or later as `python3`, and a `workDir` that can be written to.",
  });
}

/** The error for a sandbox that has ended or was paused. */
export function sandboxEnded(id: string, state: SandboxState = "gone"): BackendUnavailableError {
  const what = state === "paused" ? "was paused" : "has ended: it was killed, or its time was over";
  return new BackendUnavailableError(`The sandbox ${id} ${what}`, { remedy: "Call again to use a new one." });
}

/** The error for a session whose sandbox still runs. */
export function supervisorLost(id: string, reason: string): BackendUnavailableError {
  return new BackendUnavailableError(`The supervisor in the sandbox ${id} was lost: ${reason.trim()}`, {
    remedy: "Call again to use a new sandbox. If it happens again, check what kills programs in the sandbox.",
  });
}
