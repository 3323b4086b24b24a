const comment = new TextEncoder().encode(":\n\n");

/**
 * Returns the same response, but reports when it is over, and keeps a silent stream of events alive: proxies, and
 * `fetch` in Node, give up on a connection that carries nothing for a while.
 *
 * @param options - `onOver` is called once when the body was sent or cancelled, or the client has gone. After `heartbeatMs`
 * of silence, a stream of events gets a comment.
 * @param request - its signal is aborted when its client has gone. Kept alive, because a garbage-collected request
 * aborts no signal.
 */
export function watchResponse(
  response: Response,
  request: Request,
  { onOver, heartbeatMs = Infinity }: { readonly onOver: () => void; readonly heartbeatMs?: number | undefined },
): Response {
  if (response.body === null) {
    onOver();
    return response;
  }
  const sent: ReadableStream<Uint8Array> = response.body;
  const reader = sent.getReader();
  let isOver = false;
  let heart: NodeJS.Timeout | undefined;
  const over = (): void => {
    if (isOver) return;
    isOver = true;
    clearInterval(heart);
    request.signal.removeEventListener("abort", leave);
    onOver();
  };
  const leave = (): void => {
    over();
    reader.cancel().catch(() => {});
  };
  request.signal.addEventListener("abort", leave);
  if (request.signal.aborted) leave();
  const isEvents = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      if (!isEvents || isOver || heartbeatMs === Infinity) return;
      heart = setInterval(() => {
        // Only while the client reads. The SDK writes whole events, so a comment splits none.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(comment);
      }, heartbeatMs);
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          controller.enqueue(value);
          return;
        }
        over();
        controller.close();
      } catch (error) {
        over();
        controller.error(error);
      }
    },
    cancel: leave,
  });
  return new Response(body, { status: response.status, headers: response.headers });
}
