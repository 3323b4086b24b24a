import { execFile } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { docker } from "./docker-cli.ts";
import { nodeImage } from "./images.ts";

/** A registry of images on the loopback interface, which daemons accept without TLS. */
export interface Registry extends AsyncDisposable {
  /** `127.0.0.1:port`. */
  readonly address: string;
  /** How often a manifest was requested. */
  readonly manifests: number;
}

/** Serves an image that no daemon has: a BusyBox, and a random file so that its layer is always new. */
export async function startRegistry({ breakLayers = false } = {}): Promise<Registry> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  const image = `fenced-test:${randomUUID()}`;
  await makeImage(directory, image);
  await docker("save", "--output", join(directory, "image.tar"), image);
  await docker("rmi", "--force", image);
  await promisify(execFile)("tar", ["-xf", "image.tar"], { cwd: directory });
  const saved = JSON.parse(await readFile(join(directory, "manifest.json"), "utf8")) as SavedManifest;
  const files = saved.flatMap(({ Config, Layers }) => [Config, ...Layers]).map((file) => join(directory, file));
  const blobs = new Map<string, string>();
  const described = [];
  for (const file of files) {
    const digest = `sha256:${await digestOf(file)}`;
    blobs.set(digest, file);
    described.push({ digest, size: (await stat(file)).size });
  }
  const type = "application/vnd.docker.distribution.manifest.v2+json";
  const [config, ...layers] = described;
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: type,
    config: { mediaType: "application/vnd.docker.container.image.v1+json", ...config },
    layers: layers.map((layer) => ({ mediaType: "application/vnd.docker.image.rootfs.diff.tar", ...layer })),
  });
  const digest = `sha256:${createHash("sha256").update(manifest).digest("hex")}`;
  let manifests = 0;
  const server = createServer((request, response) => {
    const [, kind, name = ""] = /\/(manifests|blobs)\/([^/]+)$/.exec(request.url ?? "") ?? [];
    const blob = blobs.get(name);
    if (kind === "manifests") {
      manifests += 1;
      response.writeHead(200, {
        "content-type": type,
        "content-length": manifest.length,
        "docker-content-digest": digest,
      });
      response.end(request.method === "HEAD" ? undefined : manifest);
    } else if (blob !== undefined && breakLayers && blob !== files[0]) {
      response.writeHead(404, { "content-type": "application/json" });
      response.end(JSON.stringify({ errors: [{ code: "BLOB_UNKNOWN", message: "the layer is gone" }] }));
    } else if (blob !== undefined) {
      response.writeHead(200, { "content-type": "application/octet-stream" });
      createReadStream(blob).pipe(response);
    } else {
      response.writeHead(200, { "docker-distribution-api-version": "registry/2.0" });
      response.end("{}");
    }
  });
  return {
    address: await listen(server),
    get manifests() {
      return manifests;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await rm(directory, { recursive: true });
    },
  };
}

/** A registry that is there, and answers requests for images with an error. */
export async function startFailingRegistry(
  status: number,
  body: string,
): Promise<Pick<Registry, "address" | typeof Symbol.asyncDispose>> {
  const server = createServer((request, response) => {
    const failing = request.url !== "/v2/";
    const type = body.startsWith("<") ? "text/html" : "application/json";
    response.writeHead(failing ? status : 200, { "content-type": type });
    response.end(failing ? body : "{}");
  });
  return {
    address: await listen(server),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return `127.0.0.1:${address.port}`;
}

async function makeImage(directory: string, name: string): Promise<void> {
  const root = join(directory, "root");
  await mkdir(join(root, "bin"), { recursive: true });
  await mkdir(join(root, "tmp"));
  await chmod(join(root, "tmp"), 0o1777);
  const container = await docker("create", nodeImage, "sh");
  const [busybox, sh] = [join(root, "bin/busybox"), join(root, "bin/sh")];
  await docker("cp", "--follow-link", `${container}:/bin/busybox`, busybox);
  await docker("rm", container);
  await symlink("busybox", sh);
  await writeFile(join(root, "random"), randomBytes(40_000_000));
  await promisify(execFile)("tar", ["-cf", "root.tar", "-C", "root", "."], { cwd: directory });
  await docker("import", join(directory, "root.tar"), name);
}

/** What `docker save` says about an archive. */
type SavedManifest = readonly { readonly Config: string; readonly Layers: readonly string[] }[];

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
