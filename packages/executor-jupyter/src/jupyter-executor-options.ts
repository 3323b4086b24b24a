import { FunctionWithRequirements, type JsonValue } from "@fenced/core";
import type { BaseExecutorOptions } from "@fenced/executor-kit";
import { z } from "zod";
import type { JupyterServer } from "./servers/jupyter-server.ts";
import type { ServerConfig } from "./servers/open-server.ts";
import type { ServerSettings } from "./servers/server-settings.ts";

/** Settings of `JupyterCodeExecutor`; none is required. */
export interface JupyterExecutorOptions extends BaseExecutorOptions {
  /**
   * Where kernels run: a server of this package, which may serve many executors, or the address of one that runs
   * already. Default: a `LocalJupyterServer` of its own.
   */
  readonly server?: JupyterServer | ServerSettings;
  /** The kernel to start, by the name under which it is installed on the server. Default: `python3`. */
  readonly kernelName?: string;
  /**
   * Use the kernel of this id, which runs already, instead of starting one. Its variables are there; `stop()` lets it
   * run on, `restart()` restarts it. Default: none.
   */
  readonly kernelId?: string;
  /**
   * The blocks' working directory; made if missing, never deleted. With a `LocalJupyterServer` a directory of this
   * host, else one that the kernel sees: relative to the server's root directory, or to where a gateway starts kernels,
   * or, for Python, absolute. Default: a temporary one, deleted by `stop()`; with `kernelId`, the kernel's own.
   */
  readonly workDir?: string;
  /** Where rich outputs are saved as files, on this host. Default: a temporary directory, deleted by `stop()`. */
  readonly outputDir?: string;
  /**
   * Milliseconds that code has to end after it was interrupted, when its time is up or the call is aborted. Then the
   * kernel is replaced, and its variables are lost. Default: 2,000.
   */
  readonly interruptGraceMs?: number;
  /** Milliseconds for which a server that went away is called again before a call fails. Default: 10,000. */
  readonly reconnectTimeoutMs?: number;
}

const serverConfig: z.ZodType<ServerConfig> = z.union([
  z.strictObject({
    type: z.literal("local"),
    python: z.string().exactOptional(),
    startTimeoutMs: z.number().exactOptional(),
    inheritEnv: z.array(z.string()).exactOptional(),
  }),
  z.strictObject({
    type: z.literal("docker"),
    customImageName: z.string().exactOptional(),
    baseImage: z.string().exactOptional(),
    pipPackages: z.array(z.string()).exactOptional(),
    containerName: z.string().exactOptional(),
    autoRemove: z.boolean().exactOptional(),
    stopContainer: z.boolean().exactOptional(),
    dockerEnv: z.record(z.string(), z.string()).exactOptional(),
    exposePort: z.number().exactOptional(),
    token: z.string().exactOptional(),
    workDir: z.string().exactOptional(),
    bindDir: z.string().exactOptional(),
    startTimeoutMs: z.number().exactOptional(),
    docker: z
      .strictObject({
        socketPath: z.string().exactOptional(),
        host: z.string().exactOptional(),
        port: z.number().exactOptional(),
        protocol: z.enum(["http", "https", "ssh"]).exactOptional(),
      })
      .exactOptional(),
  }),
  z.strictObject({
    baseUrl: z.string(),
    token: z.string().exactOptional(),
    headers: z.record(z.string(), z.string()).exactOptional(),
    ca: z.union([z.string(), z.array(z.string())]).exactOptional(),
    legacyWebSocket: z.boolean().exactOptional(),
  }),
]);

/** The shape of the executor's config in a component model. */
export const jupyterExecutorConfig: z.ZodType<
  Omit<JupyterExecutorOptions, "server"> & { readonly server?: ServerConfig }
> = z.strictObject({
  timeoutMs: z.number().exactOptional(),
  maxOutputBytes: z.number().exactOptional(),
  env: z.record(z.string(), z.string()).exactOptional(),
  functions: z.array(z.json().transform((json: JsonValue) => FunctionWithRequirements.fromJSON(json))).exactOptional(),
  functionsModule: z.string().exactOptional(),
  server: serverConfig.exactOptional(),
  kernelName: z.string().exactOptional(),
  kernelId: z.string().exactOptional(),
  workDir: z.string().exactOptional(),
  outputDir: z.string().exactOptional(),
  interruptGraceMs: z.number().exactOptional(),
  reconnectTimeoutMs: z.number().exactOptional(),
});
