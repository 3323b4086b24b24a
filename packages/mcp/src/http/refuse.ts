/** Why a request gets no result. */
export interface Refusal {
  /** Of HTTP. */
  readonly status: number;
  /** Of JSON-RPC. Default: -32,000. */
  readonly code?: number;
  readonly message: string;
}

/** An answer that is an error of JSON-RPC. */
export function refuse({ status, code = -32_000, message }: Refusal): Response {
  const headers = status === 401 ? { "www-authenticate": "Bearer" } : {};
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers });
}
