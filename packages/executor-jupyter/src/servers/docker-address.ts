/** Where a Docker daemon is. */
export interface DockerAddress {
  /** The path of its socket. */
  readonly socketPath?: string;
  /** Its host, for a daemon that listens on a network. */
  readonly host?: string;
  readonly port?: number;
  readonly protocol?: "http" | "https" | "ssh";
}
