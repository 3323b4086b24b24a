import * as z from "zod";
import { parseHostPattern } from "../network/host-pattern.ts";
import type { CredentialSource, NetworkCredential, PlaceholderPart } from "../network/network-credential.ts";
import { callbackOption, type OptionSchemas, optionsSchema } from "./check-options.ts";

/** A host as an entry of a policy's list. */
export const hostPattern: z.ZodType<string> = z.string().check(({ value, issues }) => {
  const pattern = parseHostPattern(value);
  if ("problem" in pattern) issues.push({ code: "custom", input: value, message: pattern.problem });
});

const headerName = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/;
/** Headers that control how a message is sent; the proxy sets them itself. */
const framing = /^(?:connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

/** What a credential of either kind may have. */
interface CredentialFields extends CredentialSource {
  readonly header?: string | undefined;
  readonly placeholder?: string | undefined;
  readonly in?: readonly PlaceholderPart[] | undefined;
}

const fields: z.ZodType<CredentialFields> = optionsSchema({
  host: hostPattern.refine((host) => !host.includes("*"), "must be one host, without `*`"),
  header: z
    .string()
    .regex(headerName, 'must be a header name, e.g. "authorization"')
    .refine((name) => !framing.test(name), "must not be a header that controls how the message is sent")
    .exactOptional(),
  placeholder: z
    .string()
    // None of them begins an encoded character, or ends a string of JSON, a parameter of a query or an attribute of HTML.
    .regex(/^[\w\-.~:/@$!*(){}[\]]{8,128}$/, "must be 8 to 128 letters, digits and characters of `-._~:/@$!*(){}[]`")
    .exactOptional(),
  in: z
    .array(z.enum(["header", "query", "body"]))
    .min(1, "must name a part of a request")
    .exactOptional(),
  value: callbackOption<() => string | Promise<string>>(),
  ca: z.string().includes("-----BEGIN CERTIFICATE-----", "must be a PEM certificate").exactOptional(),
} satisfies OptionSchemas<CredentialFields>);

/** A `NetworkCredential`: a header or a placeholder. */
export const credentialOption: z.ZodType<NetworkCredential> = fields.transform((given, { issues }) => {
  const { header, placeholder, in: parts, ...source } = given;
  if (header !== undefined && placeholder === undefined) {
    if (parts === undefined) return { ...source, header };
    issues.push({ code: "custom", path: ["in"], input: parts, message: "is for a `placeholder`; leave it out" });
    return z.NEVER;
  }
  if (placeholder !== undefined && header === undefined) {
    return { ...source, placeholder, ...(parts && { in: parts }) };
  }
  const message = "must have either a `header` to add or a `placeholder` to replace";
  issues.push({ code: "custom", input: given, message });
  return z.NEVER;
});
