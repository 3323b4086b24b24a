import type { NetworkPolicy } from "@fenced/core";
import { networkPolicyOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import {
  baseExecutorConfig,
  commandLineExecutorConfig,
  type BaseExecutorOptions,
  type CommandLineExecutorOptions,
  type KeepAliveOptions,
  keepAliveOptions,
} from "@fenced/executor-kit";
import {
  checkStateful,
  type StatefulExecutorOptions,
  statefulOptions,
  warmOption,
  type WarmOptions,
} from "@fenced/executor-kit/supervisor";
import { z } from "zod";

export type { WarmOptions } from "@fenced/executor-kit/supervisor";

/** Options of `E2BCodeExecutor`; all are optional. */
export interface E2BExecutorOptions
  extends BaseExecutorOptions, CommandLineExecutorOptions, StatefulExecutorOptions, KeepAliveOptions {
  /** The template of the sandbox, which needs `sh` and Python 3.8 or later. Default: `base`. */
  readonly template?: string | undefined;
  /** The key of the service. It is a secret, and never dumped. Default: that in the variable `apiKeyVariable`. */
  readonly apiKey?: string | undefined;
  /** An environment variable of this process that has the key, as an alternative to `apiKey`; read for each request. Default: `E2B_API_KEY`. */
  readonly apiKeyVariable?: string | undefined;
  /** The domain of the service: its control API is at `https://api.DOMAIN`. Default: that in the variable `E2B_DOMAIN`, otherwise `e2b.app`. */
  readonly domain?: string | undefined;
  /** The address of the control API. Default: that in the variable `E2B_API_URL`, otherwise the one that belongs to the domain. */
  readonly apiUrl?: string | undefined;
  /**
   * The one address that leads to all sandboxes, for services without a domain. Default: that in the variable
   * `E2B_SANDBOX_URL`, otherwise those that belong to the domain.
   */
  readonly sandboxUrl?: string | undefined;
  /** What the service's list of sandboxes says about this one. Default: nothing. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /**
   * The blocks' working directory in the sandbox, absolute or relative to the home directory there; created if missing.
   * Default: `workspace`.
   */
  readonly workDir?: string | undefined;
  /**
   * What the code may connect to. `"none"`: nothing; `"open"`: whatever the service lets a sandbox reach;
   * `{ allow: ["pypi.org:443"] }`: only these hosts, through a proxy in this process. Unless it is `"open"`, the service
   * is asked for a sandbox without internet access. Default: `"open"`.
   */
  readonly network?: NetworkPolicy | undefined;
  /**
   * Keep a Python interpreter waiting in the sandbox, with modules already imported, and fork Python blocks from it; also
   * keep a Node process, if Node is installed, that becomes the next JavaScript block. Default: false.
   */
  readonly warm?: false | WarmOptions | undefined;
}

const url = z.url({ protocol: /^https?$/, error: "must be an address such as https://api.example.com" });
const line = z.string().regex(/^[^\0\r\n]+$/, "must be a single line, and not empty");

/** Checks the options, and the executor's config in a component model. */
export const e2bExecutorOptions: z.ZodType<E2BExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  ...commandLineExecutorConfig,
  template: line.exactOptional(),
  apiKey: z
    .string()
    .regex(/^[\x21-\x7e]+$/, "must be visible ASCII characters")
    .exactOptional(),
  apiKeyVariable: z.string().min(1).exactOptional(),
  domain: z
    .string()
    .regex(/^[\w.-]+(?::\d+)?$/, "must be a domain, such as e2b.app")
    .exactOptional(),
  apiUrl: url.exactOptional(),
  sandboxUrl: url.exactOptional(),
  metadata: z.record(z.string(), z.string()).exactOptional(),
  workDir: line.exactOptional(),
  network: networkPolicyOption().exactOptional(),
  warm: warmOption.exactOptional(),
  ...keepAliveOptions,
  ...statefulOptions,
} satisfies OptionSchemas<E2BExecutorOptions>)
  .check(checkStateful)
  .refine(({ apiKey, apiKeyVariable }) => apiKey === undefined || apiKeyVariable === undefined, {
    path: ["apiKeyVariable"],
    error: "cannot be combined with `apiKey`: remove one of them",
  });
