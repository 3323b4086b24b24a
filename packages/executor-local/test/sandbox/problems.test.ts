import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { symlink } from "node:fs/promises";
import path from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { hostCommand } from "../support/host-command.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const repository = path.join(import.meta.dirname, "../../../..");
/** The directory of this Node, which other users may not be able to reach. */
const nodeDirectory = path.dirname(process.execPath);

/** The output of a program that opens a sandbox, when it is started by a command with these variables. */
async function said(prefix: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const [program = "", ...words] = [...prefix, ...(await hostCommand("says-isolation.ts"))];
  const child = spawn(program, words, { env, stdio: ["ignore", "pipe", "inherit"] });
  const [output] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return output;
}

/** Makes `PATH` a directory that only has links to these programs. */
async function pathWith(...programs: readonly string[]): Promise<Record<string, string>> {
  const directory = await temporaryDirectory();
  for (const each of programs) await symlink(`/usr/bin/${each}`, path.join(directory, each));
  return { PATH: directory };
}

describe(
  "if no sandbox can be created, nothing runs, and an error gives the reason and the remedy",
  needs("python3", "bubblewrap"),
  () => {
    it("without bubblewrap", async () => {
      const output = await said([], await pathWith("python3", "bash"));
      expect(output).toMatch(/bubblewrap is not installed.* Nothing was run.*apt install bubblewrap/);
    });

    it("without Python", async () => {
      const output = await said([], await pathWith("bwrap", "bash"));
      expect(output).toMatch(/needs Python 3\.8.* Nothing was run.*apt install python3/);
    });

    it("without user namespaces", async () => {
      // Not all of `/`: mounts that come and go meanwhile would make this fail.
      const places = [
        ["--ro-bind", "/usr", "/usr", "--tmpfs", "/tmp", "--dev", "/dev"],
        [repository, nodeDirectory].flatMap((place) => ["--ro-bind", place, place]),
        ["--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"],
      ].flat();
      const outer = ["bwrap", "--unshare-user", "--disable-userns", ...places, "--proc", "/proc", "--"];
      const output = await said(outer, { PATH: "/usr/local/bin:/usr/bin:/bin" });
      expect(output).toMatch(/user namespaces are switched off.* Nothing was run.*sysctl -w user\.max_user_namespaces/);
    });
  },
);

/** What is missing in a Docker container; other engines forbid the same. */
const refusals: readonly (readonly [what: string, seccomp: boolean, message: RegExp])[] = [
  ["without options", true, /forbids namespaces.*seccomp=unconfined/],
  ["without a system call filter", false, /hides parts of \/proc.*systempaths=unconfined/],
];

/** What an engine's containers need for a sandbox inside them. */
interface Engine {
  readonly name: "docker" | "podman";
  /** The options that switch off the system call filter, and then show all of `/proc`. */
  readonly cure: readonly [seccomp: string, paths: string];
  readonly flags: readonly string[];
}

const engines: readonly Engine[] = [
  {
    name: "docker",
    cure: ["--security-opt=seccomp=unconfined", "--security-opt=systempaths=unconfined"],
    flags: [],
  },
  {
    name: "podman",
    cure: ["--security-opt=seccomp=unconfined", "--security-opt=unmask=ALL"],
    // Its own limits are above those of a machine that is a container itself.
    flags: ["--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096"],
  },
];

describe.each(engines.map((engine) => [engine.name, engine] as const))("in a container of %s", (name, engine) => {
  const [seccomp, paths] = engine.cure;

  /** This machine's programs in a container of this machine's distribution. */
  async function inside(...flags: readonly string[]): Promise<string> {
    const places = { "/usr": "/usr", [repository]: repository, [nodeDirectory]: "/fenced-node" };
    const volumes = Object.entries(places).map(([from, to]) => `--volume=${from}:${to}:ro`);
    const words = ["run", "--rm", "--network=none", "--env=PATH=/usr/bin:/bin", `--workdir=${repository}`];
    const [, ...rest] = await hostCommand("says-isolation.ts");
    const command = ["fenced-test:python", "/fenced-node/node", ...rest];
    return (await promisify(execFile)(name, [...words, ...engine.flags, ...volumes, ...flags, ...command])).stdout;
  }

  describe("a sandbox", { ...needs(name, "bubblewrap"), timeout: 120_000 }, () => {
    it.each(name === "docker" ? refusals : [])(
      "is rejected with an error that names the missing option: %s",
      async (_, filtered, message) => {
        const output = await inside(...(filtered ? [] : [seccomp]));
        expect(output).toMatch(message);
        expect(output).toContain("Nothing was run");
      },
    );

    it.each([
      ["root", "0:0"],
      ["an ordinary user", "1234:1234"],
    ])("works with both options, as %s", async (_, user) => {
      expect(await inside(seccomp, paths, "--user", user)).toMatch(/^sandboxed with [34567] processes\n/);
    });
  });
});
