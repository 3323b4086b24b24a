export { JupyterCodeExecutor } from "./jupyter-code-executor.ts";
export type { JupyterExecutorOptions } from "./jupyter-executor-options.ts";
export type { JupyterServer, ServerLease } from "./servers/jupyter-server.ts";
export { DockerJupyterServer } from "./servers/docker-jupyter-server.ts";
export type { DockerJupyterServerOptions } from "./servers/docker-server-options.ts";
export { LocalJupyterServer, type LocalJupyterServerOptions } from "./servers/local-jupyter-server.ts";
export type { ServerAddress, ServerSettings } from "./servers/server-settings.ts";
