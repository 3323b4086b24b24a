import * as z from "zod";
import type { UpstreamProxy } from "../network/upstream-proxy.ts";
import { callbackOption, type OptionSchemas, optionsSchema } from "./check-options.ts";
import { hostPattern } from "./credential-option.ts";

const proxyUrl: z.ZodType<string> = z.string().check(({ value, issues }) => {
  const problem = problemWith(value);
  if (problem !== undefined) issues.push({ code: "custom", input: "", message: problem });
});

function problemWith(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.hostname === "" || url.port === "0") {
    return 'must be the address of an HTTP proxy, e.g. "http://proxy.example:3128"';
  }
  if (url.username !== "" || url.password !== "") {
    return "must not contain a user name or password: use `username` and `password`";
  }
  return url.pathname === "/" && url.search === "" && url.hash === "" ? undefined : "must have no path";
}

/** An `UpstreamProxy`. */
export const upstreamProxyOption: z.ZodType<UpstreamProxy> = optionsSchema({
  url: proxyUrl,
  username: z
    .string()
    .regex(/^[\x20-\x39\x3b-\x7e]{1,256}$/, "must be 1 to 256 printable ASCII characters without `:`")
    .exactOptional(),
  password: callbackOption<() => string | Promise<string>>().exactOptional(),
  ca: z.string().includes("-----BEGIN CERTIFICATE-----", "must be a PEM certificate").exactOptional(),
  noProxy: z.array(hostPattern).exactOptional(),
} satisfies OptionSchemas<UpstreamProxy>).check(({ value, issues }) => {
  const problem = (path: string, message: string): void =>
    void issues.push({ code: "custom", path: [path], input: "", message });
  if (value.username === undefined && value.password) problem("username", "must be given with `password`");
  if (value.username !== undefined && !value.password) problem("password", "must be given with `username`");
  if (value.ca !== undefined && !/^https:/i.test(value.url)) problem("ca", "is for an `https://` proxy; leave it out");
});
