import { readFileSync } from "node:fs";
import tls from "node:tls";
import * as z from "zod";

let known: readonly string[] | undefined;

/**
 * The certificates, as PEM, of the authorities that Node trusts in this program. TLS options with `ca` replace them.
 * Node reads them once, and so do we.
 */
export function trustedCertificates(): readonly string[] {
  return (known ??= readTrusted());
}

function readTrusted(): readonly string[] {
  // Since Node 22.15. It includes those of the system, if Node was told to trust them.
  const list: unknown = Reflect.get(tls, "getCACertificates");
  if (typeof list === "function") return z.array(z.string()).parse(Reflect.apply(list, undefined, ["default"]));
  return [...tls.rootCertificates, ...extraCertificates(process.env["NODE_EXTRA_CA_CERTS"])];
}

function extraCertificates(file: string | undefined): readonly string[] {
  if (file === undefined || file === "") return [];
  try {
    return [readFileSync(file, "utf8")];
  } catch {
    // Node has warned about it at its start.
    return [];
  }
}
