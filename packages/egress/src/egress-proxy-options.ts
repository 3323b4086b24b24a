import type { AllowedNetwork } from "@fenced/core";
import {
  allowedNetworkOptions,
  checkCredentials,
  millisecondsOption,
  type OptionSchemas,
  optionsSchema,
  wholeNumberOption,
} from "@fenced/core/options";
import type { z } from "zod";

/** Settings of an `EgressProxy`. */
export interface EgressProxyOptions extends AllowedNetwork {
  /** Maximum number of client connections; further ones are refused at once. Default: 500. */
  readonly maxConnections?: number | undefined;
  /**
   * Milliseconds within which a request's header, or a SOCKS5 greeting, must arrive, and after which a silent host is given up
   * whose client has ended its side. Default: 15,000.
   */
  readonly headTimeoutMs?: number | undefined;
  /** Milliseconds to look up a name and connect to it, and to get a credential's value. Default: 15,000. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * Milliseconds without a byte in either direction before a connection is closed, and for which one waits for the answer about an
   * unknown host. Default: 300,000.
   */
  readonly idleTimeoutMs?: number | undefined;
}

/** Checks the options. */
export const egressProxyOptions: z.ZodType<EgressProxyOptions> = optionsSchema({
  ...allowedNetworkOptions,
  maxConnections: wholeNumberOption({ from: 1 }).exactOptional(),
  headTimeoutMs: millisecondsOption.exactOptional(),
  connectTimeoutMs: millisecondsOption.exactOptional(),
  idleTimeoutMs: millisecondsOption.exactOptional(),
} satisfies OptionSchemas<EgressProxyOptions>).check(checkCredentials);
