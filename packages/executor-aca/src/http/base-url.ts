import { InvalidInputError } from "@fenced/core";

const loopback = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * A pool's address, to which relative paths can be added.
 *
 * @throws InvalidInputError if it is not a URL, or would send the token unencrypted.
 */
export function baseUrl(endpoint: string): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (!url || !["https:", "http:"].includes(url.protocol)) {
    throw new InvalidInputError(`The \`poolManagementEndpoint\` ${JSON.stringify(endpoint)} is not a URL`, {
      remedy: "Use the pool's property poolManagementEndpoint: https://<region>.dynamicsessions.io/subscriptions/...",
      option: "poolManagementEndpoint",
    });
  }
  if (url.protocol === "http:" && !loopback.test(url.hostname)) {
    throw new InvalidInputError(
      `The \`poolManagementEndpoint\` ${JSON.stringify(endpoint)} would send the token unencrypted`,
      {
        remedy: "Use https; http is for an emulator on this host.",
        option: "poolManagementEndpoint",
      },
    );
  }
  // Without the slash, a relative path would replace the pool's name.
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  url.search = "";
  url.hash = "";
  return url;
}
