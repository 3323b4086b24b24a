import { Duplex, Readable } from "node:stream";
import { answered, type Container, OutputDemultiplexer } from "./daemon-client.ts";

/** The standard streams of a program in a container. */
export interface ProgramStreams {
  readonly stdin: Duplex;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/**
 * Runs a program in a container.
 *
 * @param user - as in `docker exec --user`. Default: the container's.
 * @returns its connection, for `splitOutputs`.
 * @throws the daemon's error.
 */
export async function execProgram(container: Container, command: readonly string[], user?: string): Promise<Duplex> {
  const create = container.exec({
    Cmd: [...command],
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    ...(user === undefined ? {} : { User: user }),
  });
  const exec = await answered(create, "exec create");
  return asDuplex(await answered(exec.start({ hijack: true, stdin: true }), "exec start"));
}

/** Splits the interleaved outputs of a daemon connection into streams, without copying. */
export function splitOutputs(connection: Duplex): ProgramStreams {
  const [stdout, stderr] = [new Readable({ read: () => {} }), new Readable({ read: () => {} })];
  const demultiplexer = new OutputDemultiplexer((name, bytes) => (name === "stdout" ? stdout : stderr).push(bytes));
  connection.on("data", (chunk: Buffer) => {
    try {
      demultiplexer.push(chunk);
    } catch (error) {
      stdout.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  });
  for (const end of ["end", "close"]) {
    connection.once(end, () => {
      stdout.push(null);
      stderr.push(null);
    });
  }
  return { stdin: connection, stdout, stderr };
}

/** The connection that the client hands over when it is asked to hijack one. */
export function asDuplex(stream: NodeJS.ReadWriteStream): Duplex {
  if (stream instanceof Duplex) return stream;
  throw new Error("the Docker client did not hand over its connection");
}
