import { BackendUnavailableError } from "@fenced/core";

/** Messages of ssh, and what to do about them. The first match counts. */
const remedies: readonly (readonly [said: RegExp, remedy: (host: string) => string, option?: string])[] = [
  [
    /REMOTE HOST IDENTIFICATION HAS CHANGED/,
    (host) =>
      `The host key has changed: find out why. If the change is intended, run: ssh-keygen -R ${host}, and connect once manually.`,
  ],
  [
    /Host key verification failed|No \S+ host key is known/,
    () =>
      "Connect once manually with ssh and check the host key, or set the option StrictHostKeyChecking to accept-new.",
  ],
  [
    /Permission denied/,
    () =>
      "Set `identityFile` or `user`, or load the key with ssh-add; the host's authorized_keys must contain it. Passwords are not supported.",
  ],
  [/Too many authentication failures/, () => "Set `identityFile`, and set the option IdentitiesOnly to yes."],
  [/Could not resolve hostname/, () => "Check `host` and the DNS configuration.", "host"],
  [
    /Connection refused|No route to host|Network is unreachable|timed out|port 65535/,
    () =>
      "Check that the host is up, that sshd listens there on the `port`, and that no firewall blocks the connection.",
  ],
  [
    /Bad configuration option|keyword .* extra arguments|Can't open user config|Bad configuration/,
    () => "Correct the ssh configuration or `options`.",
  ],
];

/**
 * The error for a connection that failed or is gone.
 *
 * @param said - what ssh wrote.
 */
export function connectionError(problem: string, host: string, said: string): BackendUnavailableError {
  const [, remedyFor, option] = remedies.find(([pattern]) => pattern.test(said)) ?? [];
  return new BackendUnavailableError(`${problem}${reasonIn(said)}`, {
    remedy: remedyFor?.(host) ?? `Check whether \`ssh ${host} true\` works, and call again to reconnect.`,
    ...(option === undefined ? {} : { option }),
  });
}

/**
 * The error for a host on which the supervisor does not start.
 *
 * @param said - what the programs there wrote.
 */
export function cannotRun(host: string, said: string): BackendUnavailableError {
  return new BackendUnavailableError(`The host ${host} cannot run code${reasonIn(said)}`, {
    remedy:
      "It needs Python 3.8 or later: install `python3` there, or put the directory of one first in the PATH of `env`.",
  });
}

/** The last lines that say something. */
function reasonIn(said: string): string {
  const lines = said.split("\n").map((line) => line.trim());
  const telling = lines.filter(
    (line) => line !== "" && !/^@+$|^debug\d|^Warning: Permanently added|: Unsupported option "gssapi/i.test(line),
  );
  const reason = telling.slice(-4).join("; ").slice(-600);
  return reason === "" ? "" : `: ${reason}`;
}

/** The error for a machine without ssh. */
export function noSsh(cause: unknown): BackendUnavailableError {
  return new BackendUnavailableError(`The program ssh could not be started: ${String(cause)}`, {
    remedy:
      "Install the OpenSSH client (Debian: apt-get install openssh-client), and make sure that it is on the PATH.",
    cause,
  });
}

/** The error for a process that cannot start ssh because it has no descriptors left for its streams. */
export function tooManyFiles(): BackendUnavailableError {
  return new BackendUnavailableError("The program ssh could not be started: too many files are open", {
    remedy: "Raise the limit on open files, `ulimit -n`, or use fewer executors at once.",
  });
}
