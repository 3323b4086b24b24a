// Runs code in a session of an Azure session pool; here, of the emulator on this machine.
// needs: python3
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
// #region emulator
import { startAcaEmulator } from "@fenced/aca-emulator";
// #endregion
// #region run
import { ACADynamicSessionsCodeExecutor } from "@fenced/executor-aca";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
await writeFile("prices.csv", "apple,3\npear,5\n");

// #region emulator
await using emulator = await startAcaEmulator();
process.env["ACA_POOL_MANAGEMENT_ENDPOINT"] = emulator.endpoint;
process.env["ACA_TOKEN"] = emulator.token();
// #endregion

// #region run
await using executor = new ACADynamicSessionsCodeExecutor({
  poolManagementEndpoint: process.env["ACA_POOL_MANAGEMENT_ENDPOINT"] ?? "",
  tokenVariable: "ACA_TOKEN", // leave it out to use the default Azure credential
});
await executor.uploadFiles(["prices.csv"]);
const python = (code: string) => executor.executeCodeBlocks([{ language: "python", code }]);
await python("prices = [int(line.split(',')[1]) for line in open('prices.csv')]");
const result = await python("sum(prices)"); // variables stay
console.log(result.exitCode, result.output); // 0 "8\n"
// #endregion

assert.equal(result.output, "8\n");
