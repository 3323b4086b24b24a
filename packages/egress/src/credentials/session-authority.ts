import { constants, generateKeyPair, privateEncrypt, randomBytes } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { promisify } from "node:util";
import type forgeLibrary from "node-forge";
import type { pki } from "node-forge";

type Forge = typeof forgeLibrary;

/** A key with its certificate. */
interface Identity {
  readonly key: pki.rsa.PrivateKey;
  readonly certificate: pki.Certificate;
  readonly pem: string;
}

/** Long enough for any session: clients got the certificate at their start, and cannot get another. */
const rootLifetimeMs = 3650 * 24 * 3_600_000;
/** Short enough that a leaked certificate soon becomes worthless, and the age at which it is replaced. */
const [lifetimeMs, replacedAfterMs] = [30 * 24 * 3_600_000, 15 * 24 * 3_600_000];
/** Contexts to keep, of some 10 KB each. */
const mostContexts = 100;
/** Tolerance for clocks that are behind. */
const earlierMs = 24 * 3_600_000;

/**
 * A certificate authority that lives and dies with the proxy: its key exists only in this process, and signs only
 * certificates for the hosts that have a credential or a rule.
 */
export class SessionAuthority {
  readonly #forge: Forge;
  readonly #root: Identity;
  /** One key for all hosts: anyone who can read one key could read them all. */
  readonly #leafKey: { readonly keys: pki.rsa.KeyPair; readonly pem: string };
  readonly #contexts = new Map<string, { readonly context: SecureContext; readonly madeAt: number }>();

  private constructor(forge: Forge, root: Identity, leafKey: { keys: pki.rsa.KeyPair; pem: string }) {
    this.#forge = forge;
    this.#root = root;
    this.#leafKey = leafKey;
  }

  static async create(): Promise<SessionAuthority> {
    const { default: forge } = await import("node-forge");
    const [rootKey, leafKey] = await Promise.all([newKey(forge), newKey(forge)]);
    const name = [{ name: "commonName", value: `Fenced session ${randomBytes(4).toString("hex")}` }];
    const certificate = blank(forge, rootKey.keys.publicKey, rootLifetimeMs);
    certificate.setSubject(name);
    certificate.setIssuer(name);
    certificate.setExtensions([
      { name: "basicConstraints", cA: true, pathLenConstraint: 0, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
      { name: "subjectKeyIdentifier" },
    ]);
    certificate.sign(rootKey.keys.privateKey, forge.md.sha256.create());
    const pem = forge.pki.certificateToPem(certificate);
    return new SessionAuthority(forge, { key: rootKey.keys.privateKey, certificate, pem }, leafKey);
  }

  /** The certificate to trust, as PEM. */
  get pem(): string {
    return this.#root.pem;
  }

  /** The TLS context for a server with the name of this host. */
  contextFor(host: string): SecureContext {
    const known = this.#contexts.get(host);
    if (known && Date.now() - known.madeAt < replacedAfterMs) return known.context;
    const context = createSecureContext({ key: this.#leafKey.pem, cert: this.#certificateFor(host) });
    // A rule with a star lets code choose names.
    const [oldest] = this.#contexts.keys();
    if (this.#contexts.size >= mostContexts && oldest !== undefined) this.#contexts.delete(oldest);
    this.#contexts.set(host, { context, madeAt: Date.now() });
    return context;
  }

  #certificateFor(host: string): string {
    const forge = this.#forge;
    const certificate = blank(forge, this.#leafKey.keys.publicKey, lifetimeMs);
    // A common name has at most 64 characters; the alternative name is what counts.
    certificate.setSubject([{ name: "commonName", value: host.slice(0, 64) }]);
    certificate.setIssuer(this.#root.certificate.subject.attributes);
    certificate.setExtensions([
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: [isIP(host) === 0 ? { type: 2, value: host } : { type: 7, ip: host }] },
      { name: "subjectKeyIdentifier" },
      {
        name: "authorityKeyIdentifier",
        keyIdentifier: this.#root.certificate.generateSubjectKeyIdentifier().getBytes(),
      },
    ]);
    certificate.sign(this.#root.key, forge.md.sha256.create());
    return forge.pki.certificateToPem(certificate);
  }
}

/** What is before a SHA-256 digest in a signature (RFC 8017, 9.2). */
const sha256DigestInfo = Buffer.from("3031300d060960864801650304020105000420", "hex");

function blank(forge: Forge, publicKey: pki.rsa.PublicKey, lifetime: number): pki.Certificate {
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = publicKey;
  // Positive and unique.
  certificate.serialNumber = `01${randomBytes(15).toString("hex")}`;
  certificate.validity.notBefore = new Date(Date.now() - earlierMs);
  certificate.validity.notAfter = new Date(Date.now() + lifetime);
  return certificate;
}

/** Node creates it in milliseconds and off this thread; the library would take seconds. */
async function newKey(forge: Forge): Promise<{ keys: pki.rsa.KeyPair; pem: string }> {
  const { publicKey, privateKey: pem } = await promisify(generateKeyPair)("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  const privateKey = forge.pki.privateKeyFromPem(pem);
  // The library would block this thread for tens of milliseconds, for each name that code chooses below a rule with a star.
  privateKey.sign = (sha256) => {
    if (typeof sha256 === "string") throw new TypeError("a digest is needed");
    const digest = Buffer.concat([sha256DigestInfo, Buffer.from(sha256.digest().getBytes(), "latin1")]);
    return privateEncrypt({ key: pem, padding: constants.RSA_PKCS1_PADDING }, digest).toString("latin1");
  };
  return { keys: { publicKey: forge.pki.publicKeyFromPem(publicKey), privateKey }, pem };
}
