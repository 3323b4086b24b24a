import { expect, it } from "vitest";
import { startAcaEmulator } from "../src/index.ts";

it.each([
  [{ pool: "Shell" }, /^startAcaEmulator: unknown option "pool"\. The options are port, host, /],
  [{ port: "8080" }, /"port" must be a whole number from 0 to 65535\./],
  [{ poolType: "Python" }, /"poolType" must be PythonLTS, NodeLTS or Shell\./],
  [{ maxSessions: 0 }, /"maxSessions" must be a whole number from 1/],
])("startAcaEmulator rejects unknown or invalid options: %j", async (options, message) => {
  const start: (given: object) => Promise<unknown> = startAcaEmulator;
  await expect(start(options)).rejects.toThrow(message);
});
