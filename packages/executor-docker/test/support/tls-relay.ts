import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { createServer } from "node:tls";
import { promisify } from "node:util";

/** A daemon behind TLS on the loopback interface, which admits clients with a certificate of its authority. */
export interface TlsRelay extends AsyncDisposable {
  readonly port: number;
}

/** A directory with `ca.pem`, and `cert.pem` and `key.pem` that this authority has signed for 127.0.0.1. */
export async function makeCertificates(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await openssl(directory, "req", "-x509", ...newKey("ca-key.pem"), "-subj", "/CN=ca", "-days", "2", "-out", "ca.pem");
  await openssl(directory, "req", ...newKey("key.pem"), "-subj", "/CN=daemon", "-out", "request.pem");
  await writeFile(join(directory, "names"), "subjectAltName=IP:127.0.0.1");
  const authority = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial"];
  const words = ["-req", "-in", "request.pem", "-days", "2", "-extfile", "names", "-out", "cert.pem"];
  await openssl(directory, "x509", ...words, ...authority);
}

/** Starts one in front of a daemon's socket, with the certificates of a directory. */
export async function startTlsRelay(socket: string, directory: string): Promise<TlsRelay> {
  const read = async (name: string): Promise<Buffer> => readFile(join(directory, name));
  const [ca, cert, key] = [await read("ca.pem"), await read("cert.pem"), await read("key.pem")];
  const server = createServer({ ca, cert, key, requestCert: true, rejectUnauthorized: true }, (client) => {
    const upstream = connect(socket);
    upstream.on("error", () => client.destroy());
    client.on("error", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
    client.on("close", () => upstream.destroy());
    upstream.pipe(client).pipe(upstream);
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    port: address.port,
    async [Symbol.asyncDispose]() {
      server.close();
    },
  };
}

function newKey(file: string): string[] {
  return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", file];
}

async function openssl(directory: string, ...words: readonly string[]): Promise<void> {
  await promisify(execFile)("openssl", words, { cwd: directory });
}
