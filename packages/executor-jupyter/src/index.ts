export { JupyterCodeExecutor } from "./jupyter-code-executor.ts";
export type { JupyterExecutorOptions } from "./jupyter-executor-options.ts";
export type { JupyterServer, ServerLease } from "./servers/jupyter-server.ts";
export { DockerJupyterServer, type DockerJupyterServerOptions } from "./servers/docker-jupyter-server.ts";
export type { DockerAddress } from "./servers/docker-address.ts";
export { LocalJupyterServer, type LocalJupyterServerOptions } from "./servers/local-jupyter-server.ts";
export type { ServerAddress, ServerSettings } from "./servers/server-settings.ts";
