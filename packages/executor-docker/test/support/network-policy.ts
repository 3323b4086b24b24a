import type { AllowedNetwork } from "@fenced/core";

/** Every name leads to the loopback interface of this machine, where servers play hosts. */
export function policy(options: AllowedNetwork & { readonly allow: readonly string[] }): AllowedNetwork {
  return { resolve: async () => ["127.0.0.1"], ...options, allow: [...options.allow, "127.0.0.1"] };
}
