import { BackendUnavailableError } from "@fenced/core";
import { ServerClient } from "./server-client.ts";
import type { ServerAddress } from "./server-settings.ts";

/** Cookies of an answer that are kept, and the longest one. */
const [mostCookies, longestCookie] = [20, 8192];

/**
 * Logs in with a password, as a browser does.
 *
 * @returns the address with the cookie that authenticates.
 * @throws BackendUnavailableError if the server does not accept it.
 */
export async function logIn(
  address: ServerAddress,
  password: string,
  signal: AbortSignal | undefined,
): Promise<ServerAddress> {
  await using client = new ServerClient(address);
  const form = new URLSearchParams({ password, _xsrf: address.headers["X-XSRFToken"] ?? "" });
  const response = await client.send("login", { method: "POST", form, ...(signal && { signal }) });
  await response.body?.cancel();
  const cookies = response.headers.getSetCookie().flatMap((each) => /^[^=;\s]+=[^;]+/.exec(each)?.[0] ?? []);
  const given = cookies.filter((each) => each.length <= longestCookie).slice(0, mostCookies);
  if (response.status >= 400 || given.length === 0) {
    throw new BackendUnavailableError(`The Jupyter server at ${address.baseUrl} does not accept the password`, {
      remedy: "Check `password`. Servers of a Hub need a `token` instead.",
    });
  }
  const own = address.headers["Cookie"];
  const cookie = [...(own === undefined ? [] : [own]), ...given.filter((each) => !each.startsWith("_xsrf="))];
  return { ...address, headers: { ...address.headers, Cookie: cookie.join("; ") } };
}
