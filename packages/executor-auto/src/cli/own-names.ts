/** What sets the library's options on the command line. */
export const ownNames: Readonly<Record<string, string>> = {
  docker: "DOCKER_HOST",
  image: "--image",
  network: process.argv.includes("--allow") ? "--allow" : "--network",
  workDir: "--work-dir",
  timeoutMs: "--timeout-ms",
  totalTimeoutMs: "--total-timeout-ms",
  memoryBytes: "--memory-bytes",
  env: "--env",
};
