/**
 * The last event of a stream that ended normally. Without it, a stream that a proxy ended early would look complete. It
 * has a type, so that `EventSource.onmessage` does not see it.
 */
export const endOfStream = { event: "end", data: '{"type":"end"}' } as const;
