import path from "node:path";
import type { FileResource } from "../files/session-directory.ts";
import type { Execution } from "../sessions/session.ts";
import { readJsonObject, unknownOperation, type Answer, type ApiRequest, type EmulatedPool } from "./api-request.ts";
import { readExecution } from "./execution-request.ts";
import { JsonText } from "./json-text.ts";
import { receiveUpload } from "./receive-upload.ts";

/** The API versions in which requests have the current shape. */
export const currentVersions: readonly string[] = ["2025-10-02-preview", "2025-02-02-preview", "2024-10-02-preview"];

/** Carries out a request of the current API. */
export async function handleCurrent(pool: EmulatedPool, request: ApiRequest): Promise<Answer> {
  switch (request.path[0]) {
    case "executions":
      return handleExecutions(pool, request);
    case "files":
      return handleFiles(pool, request);
    case "session":
      return handleSession(pool, request);
    case "metadata":
      return describePool(pool, request);
    default:
      throw unknownOperation(request);
  }
}

async function handleExecutions(pool: EmulatedPool, request: ApiRequest): Promise<Answer> {
  const { method, path: parts, identifier } = request;
  const [, id] = parts;
  if (method === "GET" && id !== undefined && parts.length === 2) {
    return executionAnswer(request, pool.sessions.existing(identifier).execution(id), 200);
  }
  if (method !== "POST" || parts.length !== 1) throw unknownOperation(request);
  const wanted = readExecution(request, await readJsonObject(request.message), pool);
  const execution = pool.sessions.allocate(identifier).execute(wanted);
  if (wanted.executionType === "Asynchronous") return executionAnswer(request, execution, 202);
  await execution.ended;
  return executionAnswer(request, execution, 200);
}

function executionAnswer({ identifier, endpoint, query }: ApiRequest, execution: Execution, status: number): Answer {
  const { id, executionType } = execution.request;
  const { report } = execution;
  const location = `${endpoint}/executions/${encodeURIComponent(id)}?${new URLSearchParams({
    "api-version": query.get("api-version") ?? "",
    identifier,
  }).toString()}`;
  return {
    status,
    headers: { "operation-id": id, "operation-location": location },
    body: {
      id,
      identifier,
      executionType,
      status: execution.status,
      ...(report?.error ? { error: report.error } : {}),
      ...(report && {
        result: {
          stdout: report.stdout,
          stderr: report.stderr,
          executionResult: report.result === undefined ? null : new JsonText(report.result),
          executionTimeInMilliseconds: execution.milliseconds,
        },
      }),
    },
  };
}

async function handleFiles(pool: EmulatedPool, request: ApiRequest): Promise<Answer> {
  const { method, path: parts, query, identifier } = request;
  const directory = query.get("path") ?? "/";
  const [, name, content] = parts;
  const { files } = pool.sessions.allocate(identifier);
  if (name === undefined) {
    if (method === "GET") {
      return listFiles(pool, request, await files.list(directory, query.get("recursive") === "true"));
    }
    if (method === "POST") {
      return { status: 200, body: await receiveUpload(files, request.message, directory) };
    }
    throw unknownOperation(request);
  }
  const file = path.posix.join(directory, name);
  if (method === "GET" && content === "content") return { status: 200, file: await files.openToRead(file) };
  if (content !== undefined) throw unknownOperation(request);
  if (method === "GET") return { status: 200, body: await files.describe(file) };
  if (method !== "DELETE") throw unknownOperation(request);
  await files.remove(file);
  return { status: 204 };
}

async function listFiles(pool: EmulatedPool, request: ApiRequest, all: readonly FileResource[]): Promise<Answer> {
  const start = Number(request.query.get("skip") ?? 0);
  const end = start + pool.pageSize;
  const next = new URLSearchParams(request.query);
  next.set("skip", String(end));
  return {
    status: 200,
    body: {
      value: all.slice(start, end),
      ...(end < all.length ? { nextLink: `${request.endpoint}/files?${next.toString()}` } : {}),
    },
  };
}

async function handleSession(pool: EmulatedPool, request: ApiRequest): Promise<Answer> {
  if (request.path.length !== 1) throw unknownOperation(request);
  if (request.method === "GET") {
    return { status: 200, body: pool.sessions.existing(request.identifier).resource };
  }
  if (request.method !== "DELETE") throw unknownOperation(request);
  await pool.sessions.delete(request.identifier);
  return { status: 204 };
}

async function describePool(pool: EmulatedPool, request: ApiRequest): Promise<Answer> {
  if (request.method !== "GET" || request.path.length !== 1) throw unknownOperation(request);
  return {
    status: 200,
    body: {
      runtimes: [{ name: pool.poolType, version: await pool.facts.runtime() }],
      preInstalledPackages: await pool.facts.packages(),
      createdAt: pool.createdAt.toISOString(),
      lastUpdatedAt: pool.createdAt.toISOString(),
      jupyterKernel: pool.poolType === "PythonLTS" ? "python3" : null,
    },
  };
}
