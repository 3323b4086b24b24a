/** Answers a browser that asks whether a page of an allowed origin may send a request. It sends no token with this question. */
export function preflight({ headers }: Request): Response {
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": "GET, POST, DELETE",
      // Any, because `authenticate` may read any.
      "access-control-allow-headers": headers.get("access-control-request-headers") ?? "authorization, content-type",
      "access-control-max-age": "600",
    },
  });
}

/** The same response, which a page of this origin may read. Others never get this far. */
export function readableBy(origin: string, { body, status, headers }: Response): Response {
  const all = new Headers(headers);
  all.set("access-control-allow-origin", origin);
  all.set("access-control-expose-headers", "mcp-session-id, www-authenticate");
  all.append("vary", "origin");
  return new Response(body, { status, headers: all });
}
