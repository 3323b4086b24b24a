const variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
const capturing: readonly string[] = ["true", "span_only", "span_and_event"];

/** Maximum length of a text in a span, in characters; exporters reject messages of several megabytes. */
const mostCharacters = 16_384;

/**
 * True if spans may contain what people, models and programs said: only if the process was started with
 * `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` set to `true`, `SPAN_ONLY` or `SPAN_AND_EVENT`.
 */
export function capturesContent(): boolean {
  return capturing.includes(process.env[variable]?.toLowerCase() ?? "");
}

/** A text for a span: in full, or its first 16,384 characters and its total length. */
export function captured(text: string): string {
  if (text.length <= mostCharacters) return text;
  return `${text.slice(0, mostCharacters)}\n[... cut, ${text.length} characters in total ...]`;
}
