import type { NetworkEntrance } from "./tunnels.ts";

/**
 * The variables that tell programs where a proxy is on the loopback interface, and make them trust it where it
 * terminates TLS. `ALL_PROXY` gives an HTTP address, too, because clients that need an extra package for SOCKS fail on
 * a SOCKS address.
 */
export function networkVariables({ port, authorities }: NetworkEntrance): Record<string, string> {
  const url = `http://127.0.0.1:${port}`;
  const proxies = { HTTP_PROXY: url, HTTPS_PROXY: url, ALL_PROXY: url, NO_PROXY: "localhost,127.0.0.1,::1" };
  const names = authorities === undefined ? [] : authorityNames;
  return {
    ...proxies,
    ...Object.fromEntries(Object.entries(proxies).map(([name, value]) => [name.toLowerCase(), value])),
    NODE_USE_ENV_PROXY: "1",
    ...Object.fromEntries(names.map((name) => [name, authorities ?? ""])),
  };
}

/** For OpenSSL and uv; requests; curl; pip; Node and npm; git. */
const authorityNames: readonly string[] = [
  "SSL_CERT_FILE",
  "REQUESTS_CA_BUNDLE",
  "CURL_CA_BUNDLE",
  "PIP_CERT",
  "NODE_EXTRA_CA_CERTS",
  "GIT_SSL_CAINFO",
];
