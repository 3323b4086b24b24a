import { type FencedError, inOwnWords } from "@fenced/core";

/** What sets the library's options on the command line. */
const ownNames: Readonly<Record<string, string>> = {
  docker: "DOCKER_HOST",
  image: "--image",
  workDir: "--work-dir",
  timeoutMs: "--timeout-ms",
  token: "--token",
  allowedHosts: "--allow-host",
  allowedOrigins: "--allow-origin",
  poolManagementEndpoint: "ACA_POOL_MANAGEMENT_ENDPOINT",
};

/** The message of an error, with what sets the option that it is about. */
export function onCommandLine(error: FencedError): string {
  const { option } = error;
  const inConfig = option === undefined || option in ownNames ? {} : { [option]: `"${option}" in --config` };
  return inOwnWords(error, { ...ownNames, ...inConfig });
}
