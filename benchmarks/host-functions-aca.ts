/**
 * Measures a host function call in an Azure session, carried by the pump, against one bare execution of the same emulator, the
 * minimum for any round trip into a session.
 */
// needs: python3
import { startAcaEmulator } from "@fenced/aca-emulator";
import { ACADynamicSessionsCodeExecutor } from "@fenced/executor-aca";
import { Agent, request } from "undici";
import { reportCalls, wait } from "./support/host-calls.ts";

await using emulator = await startAcaEmulator();
const token = emulator.token();
const connections = new Agent();
await using executor = new ACADynamicSessionsCodeExecutor({
  poolManagementEndpoint: emulator.endpoint,
  credential: { getToken: async () => ({ token }) },
  functions: [wait],
  maxHostCalls: 1000,
});
await executor.start();

/** The average milliseconds of 50 executions. */
async function raw(): Promise<number> {
  const url = `${emulator.endpoint}/executions?api-version=2025-10-02-preview&identifier=raw-session`;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({ codeInputType: "Inline", executionType: "Synchronous", code: "1" });
  const started = performance.now();
  for (let execution = 0; execution < 50; execution += 1) {
    const answer = await request(url, { method: "POST", headers, body, dispatcher: connections });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(text);
  }
  return (performance.now() - started) / 50;
}

await raw();
await reportCalls("Host functions in an Azure session", { executor, raw, goal: "", sideBySide: "" });
await connections.destroy();
