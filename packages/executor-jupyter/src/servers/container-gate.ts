import { randomUUID } from "node:crypto";
import { BackendUnavailableError, type NetworkDecision, type NetworkPolicy } from "@fenced/core";
import type * as DockerDaemon from "@fenced/docker-daemon";
import { EgressProxy } from "@fenced/egress";
import {
  connectSupervisor,
  PublishedPorts,
  SessionNetwork,
  type Supervisor,
  supervisorCommand,
} from "@fenced/executor-kit/supervisor";

/** `@fenced/docker-daemon`, which is loaded only when it is needed. */
export type DaemonPackage = typeof DockerDaemon;

/** What to open in a container without a network. */
export interface GateSettings {
  readonly policy: NetworkPolicy;
  /** The port in the container to make reachable from the host. */
  readonly innerPort: number;
  /** The port on 127.0.0.1 that forwards to it; 0 picks a free one. */
  readonly port: number;
  /** What the container mounts, to compare with what was checked. */
  readonly mounts: readonly DockerDaemon.MountedSource[];
  /** Called once if the connection is lost before the gate is closed. */
  readonly onLost: (reason: string) => void;
}

/**
 * The only connections of a container that has no network: a port on this host that forwards to its server, and a
 * proxy in this process that its code can use. A supervisor in the container, started with `exec`, carries both. Code
 * in the container can end the supervisor, which closes the gate.
 */
export interface ContainerGate {
  /** The port on 127.0.0.1 that forwards to the server. */
  readonly port: number;
  /** Variables that tell programs in the container where the proxy is. */
  readonly variables: Readonly<Record<string, string>>;
  /** Starts to collect refused requests; returns a function that returns them. */
  collect(): () => readonly NetworkDecision[];
  /** Ends all connections. */
  close(): Promise<void>;
}

/** @throws BackendUnavailableError if the container has no Python, or something else was mounted; the daemon's error. */
export async function openContainerGate(
  loaded: DaemonPackage,
  container: DockerDaemon.Container,
  settings: GateSettings,
): Promise<ContainerGate> {
  const { policy, innerPort, port, mounts, onLost } = settings;
  const directory = `/tmp/fenced-${randomUUID().slice(0, 8)}`;
  const targets = mounts.map(({ target }) => target);
  const command = supervisorCommand({ directory, workspace: "/tmp", mounts: targets });
  const stream = await loaded.execProgram(container, command);
  const held: { supervisor?: Supervisor } = {};
  const lost = (error: Error): void => {
    held.supervisor?.fail(error);
    onLost(error.message);
  };
  const { supervisor, inventory } = await connectSupervisor(loaded.splitOutputs(stream), { onLost: lost });
  if (!supervisor) {
    stream.destroy();
    throw new BackendUnavailableError("A network policy needs Python in the container, but this one has none", {
      remedy: 'Use an image that has Python 3.8 or later as `python3`, or set `network: "open"`.',
    });
  }
  held.supervisor = supervisor;
  await loaded.refuseReplaced(mounts, inventory);
  const network = SessionNetwork.of(policy, EgressProxy);
  const variables = (await network?.enter(supervisor)) ?? {};
  const published = await PublishedPorts.open(new Map([[innerPort, port]]), (to) => supervisor.connect(to));
  return {
    port: published.ports.get(innerPort) ?? 0,
    variables,
    collect: () => network?.collect() ?? (() => []),
    async close() {
      published.close();
      supervisor.fail(new Error("the container ended"));
      await network?.close();
    },
  };
}
