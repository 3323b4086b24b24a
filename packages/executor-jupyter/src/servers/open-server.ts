import { DockerJupyterServer, type DockerJupyterServerOptions } from "./docker-jupyter-server.ts";
import type { JupyterServer } from "./jupyter-server.ts";
import { LocalJupyterServer, type LocalJupyterServerOptions } from "./local-jupyter-server.ts";
import type { ServerSettings } from "./server-settings.ts";

/** A server as a component model writes it down. */
export type ServerConfig =
  | (LocalJupyterServerOptions & { readonly type: "local" })
  | (Omit<DockerJupyterServerOptions, "onProgress"> & { readonly type: "docker" })
  | ServerSettings;

/** The server that a component model names, not started. */
export function openServer(config: ServerConfig): JupyterServer | ServerSettings {
  if (!("type" in config)) return config;
  if (config.type === "docker") {
    const { type: _type, ...options } = config;
    return new DockerJupyterServer(options);
  }
  const { type: _type, ...options } = config;
  return new LocalJupyterServer(options);
}
