import { diag } from "@opentelemetry/api";

/** What `action` returns; if the SDK or one of its plug-ins throws, `fallback`. Telemetry never breaks what it watches. */
export function safely<T>(action: () => T, fallback: T): T {
  try {
    return action();
  } catch (error) {
    try {
      diag.error("Fenced: telemetry failed", error);
    } catch {
      // The logger is a plug-in, too.
    }
    return fallback;
  }
}
