import { TelemetryRecorder } from "@fenced/test-support/telemetry";
import { onTestFinished, vi } from "vitest";

/** If this variable is set, telemetry includes the content of messages. */
export const captureVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/** Records the test's telemetry; when the test ends, stops recording and restores environment variables. */
export function recordTelemetry(): TelemetryRecorder {
  const recorder = new TelemetryRecorder();
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await recorder[Symbol.asyncDispose]();
  });
  return recorder;
}
