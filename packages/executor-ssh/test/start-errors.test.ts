import { execFile } from "node:child_process";
import { readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { needs } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { SshServer } from "@fenced/test-support/ssh-server";
import { describe, expect, it, onTestFinished } from "vitest";
import { bash, create, failure, server } from "./support/server.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const run = promisify(execFile);

describe("an error says what to do about", needs("ssh", "bash", "python3"), () => {
  it("an unknown host", async () => {
    const error = await failure({ host: "no-such-host.invalid", options: { ConnectTimeout: "5" } });
    expect(error.message).toMatch(/no-such-host\.invalid cannot be reached: .*resolve hostname.*Check `host`/s);
  });

  it("a port where nothing listens", async () => {
    const error = await failure({ port: 1 });
    expect(error.message).toMatch(/Connection refused.*sshd listens there on the `port`/s);
  });

  it("a key that the host rejects", async () => {
    const configFile = path.join(await temporaryDirectory(), "config");
    const config = await readFile(server?.configFile ?? "", "utf8");
    await writeFile(configFile, config.replace("client_key", "other_key"));
    const error = await failure({ configFile });
    expect(error.message).toMatch(/Permission denied.*Set `identityFile`/s);
    await expect(
      bash(create({ configFile, identityFile: `${server?.directory}/client_key` }), "echo in"),
    ).resolves.toMatchObject({ output: "in\n" });
  });

  it("a host key that is unknown or has changed", async () => {
    const directory = await temporaryDirectory();
    const known = path.join(directory, "known_hosts");
    await writeFile(known, "");
    const unknown = await failure({ options: { UserKnownHostsFile: known } });
    expect(unknown.message).toMatch(/Host key verification failed.*StrictHostKeyChecking to accept-new/s);
    const other = await readFile(`${server?.directory}/other_key.pub`, "utf8");
    await writeFile(known, `[127.0.0.1]:${server?.port} ${other}`);
    const changed = await failure({ options: { UserKnownHostsFile: known } });
    expect(changed.message).toMatch(/find out why.*ssh-keygen -R/s);
  });

  it("a missing ssh program", async () => {
    const searchPath = process.env["PATH"] ?? "";
    onTestFinished(() => {
      process.env["PATH"] = searchPath;
    });
    process.env["PATH"] = "/nowhere";
    const error = await failure({});
    expect(error.message).toMatch(/The program ssh could not be started.*openssh-client/s);
  });

  it.each([0, 6])("too many open files, with %i descriptors left, and leaves no process", async (left) => {
    const [program, ...words] = await bundledCommand(path.join(import.meta.dirname, "fixtures/few-descriptors.ts"));
    const args = ["-c", 'ulimit -n 200; exec "$@"', "limited", program, ...words];
    const { stdout } = await run("sh", [...args, server?.configFile ?? "", String(left)]);
    expect(stdout).toMatch(/could not be started: too many files are open.*`ulimit -n`.* Children: \n$/);
  });

  it("a host that runs no commands, while a talkative shell is no error", async () => {
    await using strict = await SshServer.start("ForceCommand echo no commands here");
    const error = await failure({ configFile: strict.configFile });
    expect(error.message).toMatch(/cannot be reached: .*no commands here/s);
    await using talkative = await SshServer.start(
      `ForceCommand echo Welcome; echo Beware >&2; exec sh -c "$SSH_ORIGINAL_COMMAND"`,
    );
    const result = await bash(create({ configFile: talkative.configFile }), "echo out; echo err >&2");
    expect(result).toMatchObject({ exitCode: 0, stdout: "out\n", stderr: "err\n" });
  });

  it("a host without Python, or with one that is too old or does not work", async () => {
    const directory = await temporaryDirectory();
    for (const name of ["sh", "dd"]) await symlink(`/bin/${name}`, path.join(directory, name));
    await using bare = await SshServer.start(
      `ForceCommand PATH=${directory}; export PATH; eval "$SSH_ORIGINAL_COMMAND"`,
    );
    const { configFile } = bare;
    const remedy =
      "It needs Python 3.8 or later: install `python3` there, or put the directory of one first in the PATH of `env`.";
    const none = await failure({ configFile });
    expect(none.message).toBe(`The host fenced-test cannot run code: there is no python3 on its PATH. ${remedy}`);
    const stub = path.join(directory, "python3");
    await writeFile(stub, "#!/bin/sh\necho 'this Python is broken' >&2\nexit 1\n", { mode: 0o755 });
    const broken = await failure({ configFile });
    expect(broken.message).toBe(`The host fenced-test cannot run code: this Python is broken. ${remedy}`);
    const { stdout } = await run("python3", ["-c", "import sys; print(sys.executable)"]);
    const old = `import sys; sys.version_info = (3, 6); sys.version = '3.6.8 (default)'; exec(sys.argv.pop(1))`;
    await writeFile(stub, `#!/bin/sh\nshift 5\nexec ${stdout.trim()} -c "${old}" "$@"\n`);
    const outdated = await failure({ configFile });
    expect(outdated.message).toBe(`The host fenced-test cannot run code: its Python is too old: 3.6.8. ${remedy}`);
    // The search continues with the account's own PATH, so blocks may have one without Python.
    const executor = create({ configFile, env: { PATH: `/nowhere:${path.dirname(stdout.trim())}:/usr/bin:/bin` } });
    expect(await bash(executor, "echo found")).toMatchObject({ output: "found\n" });
    await executor.stop();
  });

  it("options that the executor sets itself, and hosts that look like options", () => {
    expect(() => create({ options: { controlpath: "/tmp/x" } })).toThrow(
      /"options.controlpath" is not valid. It is set by the executor: remove it/,
    );
    expect(() => create({ options: { "Port\nHost": "x" } })).toThrow(/ssh_config\(5\)/);
    expect(() => create({ host: "-oProxyCommand=touch /tmp/x" })).toThrow(/"host" is not valid. It must not be empty/);
    expect(() => create({ port: 0 })).toThrow(/"port" is 0. It must be a whole number from 1 to 65535/);
  });

  it("an option that ssh does not know", async () => {
    const error = await failure({ options: { NoSuchOption: "1" } });
    expect(error.message).toMatch(/Bad configuration option.*Correct the ssh configuration or `options`/s);
  });
});
