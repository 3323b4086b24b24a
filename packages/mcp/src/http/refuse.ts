/** Why a request is refused. */
export interface Refusal {
  /** The HTTP status. */
  readonly status: number;
  /** The JSON-RPC error code. Default: -32,000. */
  readonly code?: number;
  readonly message: string;
}

/** Creates a response with a JSON-RPC error. */
export function refuse({ status, code = -32_000, message }: Refusal): Response {
  const headers = status === 401 ? { "www-authenticate": "Bearer" } : {};
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers });
}
