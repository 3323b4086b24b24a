import { TelemetryRecorder } from "@fenced/test-support/telemetry";
import { onTestFinished, vi } from "vitest";

/** Set, it lets telemetry carry what was said. */
export const captureVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/** Records what the test sends to telemetry, until it ends; then environment variables are what they were, too. */
export function recordTelemetry(): TelemetryRecorder {
  const recorder = new TelemetryRecorder();
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await recorder[Symbol.asyncDispose]();
  });
  return recorder;
}
