import { isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { errorCode, Refusal } from "./refusal.ts";
import { trustedCertificates } from "./trusted-certificates.ts";

/** A connection that is to become one of TLS. */
export interface SecureConnection {
  /** The name or address that the certificate must be for. */
  readonly host: string;
  /** Certificates to trust besides those that Node trusts. */
  readonly ca: readonly string[];
  /** What the host is called in a refusal. */
  readonly called: string;
  readonly timeoutMs: number;
}

/**
 * Speaks TLS on a connection; the host must present its own valid certificate.
 *
 * @throws Refusal
 */
export function connectSecurely(socket: Socket, { host, ca, called, timeoutMs }: SecureConnection): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const secured = connectTls({
      socket,
      host,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ["http/1.1"],
      // Whatever NODE_TLS_REJECT_UNAUTHORIZED says: the credential must not go to anyone else.
      rejectUnauthorized: true,
      ...(ca.length === 0 ? {} : { ca: [...trustedCertificates(), ...ca] }),
    });
    const timer = setTimeout(() => secured.destroy(new Error("late")), timeoutMs);
    secured.once("close", () => clearTimeout(timer));
    secured.once("error", (error) => {
      socket.destroy();
      reject(new Refusal(502, `could not connect securely to ${called}: ${errorCode(error)}`));
    });
    secured.once("secureConnect", () => {
      clearTimeout(timer);
      secured.on("error", () => {});
      resolve(secured);
    });
  });
}
