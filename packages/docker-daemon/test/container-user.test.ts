import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "@fenced/test-support";
import { expect, it } from "vitest";
import { findDaemon, refuseSockets } from "../src/index.ts";

// Up to Node 22, after a synchronous stat of a socket, the next look-up of a package that is a link, as pnpm installs them,
// returns the link itself, next to which its dependencies are missing (nodejs/node#51142).
it("inspecting the daemon's socket does not break imports through links", needs("docker"), async () => {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "fenced-test-")));
  const daemon = await findDaemon(undefined);
  try {
    await mkdir(join(directory, "node_modules"));
    for (const name of ["first", "second"]) {
      await mkdir(join(directory, name));
      await writeFile(join(directory, name, "index.js"), "");
      await symlink(join(directory, name), join(directory, "node_modules", name));
    }
    const { resolve } = createRequire(join(directory, "main.js"));
    expect(resolve("first")).toBe(join(directory, "first", "index.js"));
    await refuseSockets(daemon, [{ option: "workDir", source: directory }]);
    expect(resolve("second")).toBe(join(directory, "second", "index.js"));
  } finally {
    daemon.release();
    await rm(directory, { recursive: true });
  }
});
