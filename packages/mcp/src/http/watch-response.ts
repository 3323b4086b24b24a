/**
 * Returns the same response, and calls `onOver` once when its body was sent or cancelled, or its client has gone.
 *
 * @param request - its signal is aborted when its client has gone. Kept alive, because a garbage-collected request
 * aborts no signal.
 */
export function watchResponse(response: Response, request: Request, onOver: () => void): Response {
  if (response.body === null) {
    onOver();
    return response;
  }
  const sent: ReadableStream<Uint8Array> = response.body;
  const reader = sent.getReader();
  let isOver = false;
  const over = (): void => {
    if (isOver) return;
    isOver = true;
    request.signal.removeEventListener("abort", leave);
    onOver();
  };
  const leave = (): void => {
    over();
    reader.cancel().catch(() => {});
  };
  request.signal.addEventListener("abort", leave);
  if (request.signal.aborted) leave();
  const body = new ReadableStream<Uint8Array>({
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
