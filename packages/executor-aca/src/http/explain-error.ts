import {
  BackendUnavailableError,
  FencedError,
  FileNotFoundError,
  InvalidInputError,
  WorkspacePathError,
} from "@fenced/core";
import { ConnectionError, ServiceError } from "./service-error.ts";

/** Turns an error of the service into one that says what to do. Returns other errors unchanged. */
export function explainError(error: unknown): unknown {
  if (FencedError.isInstance(error)) return error;
  if (error instanceof ConnectionError) {
    return new BackendUnavailableError(`The session pool did not answer: ${error.message}`, {
      remedy: "Check `poolManagementEndpoint` and the network connection.",
      option: "poolManagementEndpoint",
      cause: error.cause,
    });
  }
  if (!(error instanceof ServiceError)) return error;
  if (error.status === 413) {
    return new InvalidInputError("The file is too large for a session", {
      remedy: "Use files of at most 128 MB.",
      cause: error,
    });
  }
  const { problem, remedy, option } = explanations.find(({ when }) => when(error)) ?? unexplained;
  const said = [error.code, error.reason].filter((each) => each !== "").join(": ");
  const answer = `HTTP ${error.status}${said === "" ? "" : `, ${said}`}`;
  return new BackendUnavailableError(`${problem} (${answer})`, {
    remedy,
    ...(option === undefined ? {} : { option }),
    cause: error,
  });
}

/** Turns the service's error about a file into one that `WorkspaceFiles` documents. */
export function fileError(error: unknown, file: string): unknown {
  if (!(error instanceof ServiceError) || error.isCapacity || error.isSessionGone) return explainError(error);
  if (error.status === 404) {
    return new FileNotFoundError(`There is no file ${JSON.stringify(file)} in the session`, {
      remedy: "`files.list()` shows which files there are.",
      cause: error,
    });
  }
  if (error.status !== 400) return explainError(error);
  if (/path|traversal/i.test(error.code)) return outsideWorkspace(file, error);
  return new InvalidInputError(`The session refused the file name ${JSON.stringify(file)} (${error.reason})`, {
    remedy: "Use the name of a regular file; `files.list()` shows which there are.",
    cause: error,
  });
}

function outsideWorkspace(file: string, cause: unknown): WorkspacePathError {
  return new WorkspacePathError(`The path ${JSON.stringify(file)} is not in the workspace`, {
    remedy: "Use a path relative to /mnt/data, without `..` and not through a symbolic link that points outside.",
    cause,
  });
}

interface Explanation {
  readonly when: (error: ServiceError) => boolean;
  readonly problem: string;
  readonly remedy: string;
  /** The option that the remedy is about. */
  readonly option?: string;
}

const unexplained: Omit<Explanation, "when"> = {
  problem: "The session pool refused the request",
  remedy: "Check the answer in parentheses and the pool's logs.",
};

const explanations: readonly Explanation[] = [
  {
    when: ({ status, reason }) => status === 401 && /audience/i.test(reason),
    problem: "The token is for another audience",
    remedy: "Use a credential that returns tokens for the scope https://dynamicsessions.io/.default.",
  },
  {
    when: ({ status }) => status === 401,
    problem: "The session pool did not accept the token",
    remedy:
      "Check that `poolManagementEndpoint` is the pool's full address (az containerapp sessionpool show --query " +
      "properties.poolManagementEndpoint), and that the credential's token is for https://dynamicsessions.io and not expired.",
    option: "poolManagementEndpoint",
  },
  {
    when: ({ status }) => status === 403,
    problem: "The credential has no permission to use the session pool",
    remedy:
      'Assign the role "Azure ContainerApps Session Executor" on the pool; it may take some minutes to take effect.',
  },
  {
    when: (error) => error.isSessionGone,
    problem: "The session is gone",
    remedy: "Its variables and files are lost. Call again for a new session, or give the pool a longer cooldown.",
  },
  {
    when: (error) => error.isCapacity,
    problem: "The session pool is full",
    remedy:
      "Raise the pool's maximum of concurrent sessions, stop executors that are not needed, or wait: a session " +
      "that was not stopped holds its slot for the pool's cooldown.",
  },
  {
    when: ({ status }) => status === 404,
    problem: "There is no session pool at this address, or it does not support the call",
    remedy: "Check `poolManagementEndpoint` and `apiVersion`.",
    option: "poolManagementEndpoint",
  },
  {
    when: ({ status }) => status >= 500,
    problem: "The session pool failed",
    remedy: "Try again later, and check Azure's status page.",
  },
];
