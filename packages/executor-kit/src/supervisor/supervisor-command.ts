import { readFileSync } from "node:fs";

const bootProgram: string = readFileSync(new URL("./boot.sh", import.meta.url), "utf8");
const inventoryProgram: string = readFileSync(new URL("./inventory.sh", import.meta.url), "utf8");
const channelProgram: string = readFileSync(new URL("./channel.py", import.meta.url), "utf8");
const processesProgram: string = readFileSync(new URL("./processes.py", import.meta.url), "utf8");
const tunnelsProgram: string = readFileSync(new URL("./tunnels.py", import.meta.url), "utf8");
const relayProgram: string = readFileSync(new URL("./relay.py", import.meta.url), "utf8");
const blocksProgram: string = readFileSync(new URL("./blocks.py", import.meta.url), "utf8");
const mainProgram: string = readFileSync(new URL("./supervisor.py", import.meta.url), "utf8");

/** The supervisor's modules, in the order in which they import each other. */
const modules: Readonly<Record<string, string>> = {
  _fenced_channel: channelProgram,
  _fenced_processes: processesProgram,
  _fenced_tunnels: tunnelsProgram,
  _fenced_relay: relayProgram,
  _fenced_blocks: blocksProgram,
  _fenced_supervisor: mainProgram,
};

const carrierProgram: string = readFileSync(new URL("./carrier.py", import.meta.url), "utf8");

/**
 * A program in Python that carries connections of programs to the host over its standard streams, and nothing else, where something
 * else runs the blocks. For Python 3.8 or later, on Linux, with two arguments: the directory for the socket, and a line to
 * say before the first frame. It waits for `hostMagic` first; then it speaks with `Tunnels`.
 */
export function carrierText(): string {
  return withModules({
    _fenced_channel: channelProgram,
    _fenced_tunnels: tunnelsProgram,
    _fenced_carrier: carrierProgram,
  });
}

/** What the supervisor is told when it starts. */
export interface SupervisorConfig {
  /** A directory of the session, where the supervisor runs: it makes it, and removes it at its end. Absolute path. */
  readonly directory: string;
  /** The directory in which programs run. Absolute path. */
  readonly workspace: string;
  /** Programs to look for; the answer is in the `inventory`. Default: none. */
  readonly programs?: readonly string[];
  /** `PATH` to look on. Default: that of where it runs. */
  readonly path?: string;
  /**
   * Nothing else is meant to run there, as in a container of its own: a reset kills every process but its own and the first,
   * and its end leaves the clean-up to the end of the place. Default: false.
   */
  readonly alone?: boolean;
  /**
   * A file in the workspace whose content the supervisor says, and to which it adds an `r`: so a host learns whether it sees the
   * same directory. The supervisor also listens at a socket of this name with `.sock` added. Absolute path. Default: none.
   */
  readonly probe?: string;
}

/**
 * The command that starts the supervisor, by Python 3.8 or later if there is one, else a shell program that only says what is
 * there. It needs a POSIX shell as `sh`, and Linux. Start it wherever programs are to run, with pipes for its standard input and
 * output, and give these to `connectSupervisor`.
 *
 * @example
 * const command = supervisorCommand({ directory: "/tmp/session", workspace: "/workspace", programs: ["node"] });
 */
export function supervisorCommand({
  directory,
  workspace,
  programs = [],
  path = "",
  alone = false,
  probe = "",
}: SupervisorConfig): [string, ...string[]] {
  const words = [directory, workspace, probe, path, alone ? "alone" : "", ...programs];
  return ["sh", "-c", bootProgram, "fenced", supervisorProgram, inventoryProgram, ...words];
}

/** A program that makes modules of texts, and runs them, in this order. JSON of them is Python, too. */
function withModules(programs: Readonly<Record<string, string>>): string {
  return `import sys, types
for name, program in ${JSON.stringify(programs)}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(program, "<" + name + ">", "exec"), module.__dict__)
`;
}

const supervisorProgram = withModules(modules);
