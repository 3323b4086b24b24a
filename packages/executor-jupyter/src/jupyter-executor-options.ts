import { millisecondsOption, objectOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import {
  baseExecutorConfig,
  type BaseExecutorOptions,
  type KeepAliveOptions,
  keepAliveOptions,
} from "@fenced/executor-kit";
import { z } from "zod";
import { DockerJupyterServer } from "./servers/docker-jupyter-server.ts";
import { dockerServerOptions } from "./servers/docker-server-options.ts";
import { isJupyterServer, type JupyterServer } from "./servers/jupyter-server.ts";
import { LocalJupyterServer, localServerOptions } from "./servers/local-jupyter-server.ts";
import { serverSettings, type ServerSettings } from "./servers/server-settings.ts";

/** Settings of `JupyterCodeExecutor`; none is required. */
export interface JupyterExecutorOptions extends BaseExecutorOptions, KeepAliveOptions {
  /**
   * Where kernels run: a server of this package, which may serve many executors, or the address of a running server.
   * Executors on one server are not separated: code can read and end the kernels of all of them. Default: its own `LocalJupyterServer`.
   */
  readonly server?: JupyterServer | ServerSettings | undefined;
  /** The kernel to start, by the name under which it is installed on the server. Default: `python3`. */
  readonly kernelName?: string | undefined;
  /**
   * Use the running kernel with this id instead of starting one. Its variables are kept; `stop()` leaves it running,
   * `restart()` restarts it. Default: none.
   */
  readonly kernelId?: string | undefined;
  /**
   * The blocks' working directory; created if missing, never deleted. With a `LocalJupyterServer` it is a directory
   * of this host, else one that the kernel sees: relative to the server's root directory, or to where a gateway
   * starts kernels, or, for Python, absolute. Default: a temporary one, deleted by `stop()`; with `kernelId`, the
   * kernel's own.
   */
  readonly workDir?: string | undefined;
  /** The directory on this host where rich outputs are saved as files. Default: a temporary one, deleted by `stop()`. */
  readonly outputDir?: string | undefined;
  /**
   * Milliseconds that code has to end once it is interrupted at its time limit or by an abort. After that, the kernel
   * is replaced, and its variables are lost. Default: 2,000.
   */
  readonly interruptGraceMs?: number | undefined;
  /** How long a call keeps retrying a server that went away before it fails, in milliseconds. Default: 10,000. */
  readonly reconnectTimeoutMs?: number | undefined;
}

/** A server, or its settings in a component model. */
const serverOption: z.ZodType<JupyterServer | ServerSettings> = z.union(
  [
    objectOption<JupyterServer>(["acquire"], "a Jupyter server"),
    z
      .strictObject({ type: z.literal("local"), ...localServerOptions })
      .transform(({ type: _type, ...options }) => new LocalJupyterServer(options)),
    z
      .strictObject({ type: z.literal("docker"), ...dockerServerOptions })
      .transform(({ type: _type, ...options }) => new DockerJupyterServer(options)),
    serverSettings,
  ],
  "must be a LocalJupyterServer, a DockerJupyterServer, or the address of a server: { baseUrl, token }",
);

/** Checks the options, and the executor's config in a component model. */
export const jupyterExecutorOptions: z.ZodType<JupyterExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  server: serverOption.exactOptional(),
  kernelName: z.string().min(1).exactOptional(),
  kernelId: z.string().min(1).exactOptional(),
  workDir: z.string().min(1).exactOptional(),
  outputDir: z.string().min(1).exactOptional(),
  interruptGraceMs: millisecondsOption.exactOptional(),
  reconnectTimeoutMs: millisecondsOption.exactOptional(),
  ...keepAliveOptions,
} satisfies OptionSchemas<JupyterExecutorOptions>).superRefine(({ keepAliveMs = 0, kernelId, server }, context) => {
  if (keepAliveMs === 0) return;
  const refuse = (message: string): void =>
    context.addIssue({ code: "custom", path: ["keepAliveMs"], input: keepAliveMs, message });
  if (server === undefined || isJupyterServer(server)) {
    refuse("needs a server that does not end with this program: run one, and give its address as `server`");
  } else if (kernelId !== undefined) {
    refuse("cannot be combined with `kernelId`: that kernel is not the session's own");
  }
});
