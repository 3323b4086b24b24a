const variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
const capturing: readonly string[] = ["true", "span_only", "span_and_event"];

/** Characters of one text that a span carries at most; exporters refuse messages of some megabytes. */
const mostCharacters = 16_384;

/**
 * Whether spans may carry what people, models and programs said: only if the process was started with
 * `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` set to `true`, `SPAN_ONLY` or `SPAN_AND_EVENT`.
 */
export function capturesContent(): boolean {
  return capturing.includes(process.env[variable]?.toLowerCase() ?? "");
}

/** A text as a span carries it: whole, or its first 16,384 characters and how many there were. */
export function captured(text: string): string {
  if (text.length <= mostCharacters) return text;
  return `${text.slice(0, mostCharacters)}\n[... cut, ${text.length} characters in all ...]`;
}
