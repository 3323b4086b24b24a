import type { FileResource } from "../files/session-directory.ts";
import { ServiceFailure } from "../service-failure.ts";
import { readJsonObject, unknownOperation, type Answer, type ApiRequest, type EmulatedPool } from "./api-request.ts";
import { readOlderExecution } from "./execution-request.ts";
import { JsonText } from "./json-text.ts";
import { receiveUpload } from "./receive-upload.ts";

/** The API version in which requests have the older shape. */
export const olderVersion = "2024-02-02-preview";

/** Carries out a request of the older API: Python only, one flat directory, no calls for sessions or executions. */
export async function handleOlder(pool: EmulatedPool, request: ApiRequest): Promise<Answer> {
  if (pool.poolType !== "PythonLTS") {
    throw new ServiceFailure(400, "UnsupportedPoolType", `API version ${olderVersion} supports Python pools only.`);
  }
  const { files } = pool.sessions.allocate(request.identifier);
  switch (`${request.method} ${request.path.slice(0, 2).join("/")}`) {
    case "POST code/execute":
      return execute(pool, request);
    case "POST files/upload":
      return {
        status: 200,
        body: { value: [olderFile(await receiveUpload(files, request.message, "/"))] },
      };
    case "GET files": {
      const all = await files.list("/", false);
      return { status: 200, body: { value: all.filter(({ type }) => type === "file").map(olderFile) } };
    }
    case "GET files/content":
      return { status: 200, file: await files.openToRead(onlyName(request)) };
    default:
      throw unknownOperation(request);
  }
}

async function execute(pool: EmulatedPool, request: ApiRequest): Promise<Answer> {
  const wanted = readOlderExecution(await readJsonObject(request.message), pool);
  const execution = pool.sessions.allocate(request.identifier).execute(wanted);
  await execution.ended;
  const { report } = execution;
  return {
    status: 200,
    body: {
      properties: {
        status: execution.status === "Succeeded" ? "Success" : "Failure",
        stdout: report?.stdout ?? "",
        stderr: report?.stderr ?? "",
        result: report?.result === undefined || report.result === "null" ? "" : new JsonText(report.result),
        executionTimeInMilliseconds: execution.milliseconds,
      },
    },
  };
}

function onlyName(request: ApiRequest): string {
  const [, , name, more] = request.path;
  if (name === undefined || more !== undefined) throw unknownOperation(request);
  return name;
}

function olderFile({ name, sizeInBytes, lastModifiedAt }: FileResource): object {
  return { properties: { filename: name, size: sizeInBytes, lastModifiedTime: lastModifiedAt } };
}
