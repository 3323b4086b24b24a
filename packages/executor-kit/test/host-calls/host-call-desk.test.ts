import { once } from "node:events";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { hostFunction } from "@fenced/core";
import { expect, it, vi } from "vitest";
import { callFrame } from "../../src/host-calls/call-frames.ts";
import { listenForCalls } from "../../src/host-calls/call-server.ts";
import { HostCallDesk } from "../../src/host-calls/host-call-desk.ts";
import { encodeFrame } from "../../src/supervisor/wire/wire.ts";
import { ExecutorTelemetry } from "../../src/telemetry/executor-telemetry.ts";
import { ScriptedExecutor } from "../support/scripted-executor.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

it("a program that calls and hangs up cannot pile up calls while nobody reads its events", async () => {
  const execute = vi.fn<() => Promise<void>>(() => sleep(20));
  const slow = hostFunction({ name: "slow", description: "", input: { type: "object" }, execute });
  const telemetry = new ExecutorTelemetry(new ScriptedExecutor(), "test");
  const desk = new HostCallDesk({ telemetry });
  const sink = { signal: new AbortController().signal, write: () => new Promise<void>(() => {}) };
  const functions = new Map([["slow", slow]]);
  const calls = desk.open({ functions, approve: undefined, maxCalls: 1000, index: 0, sink, telemetry });
  const { server, address } = await listenForCalls(await temporaryDirectory(), (connection) => desk.accept(connection));
  for (let count = 0; count < 60; count += 1) {
    const socket = net.connect(address.replace("unix:", ""));
    socket.write(encodeFrame(callFrame.hello, 0, Buffer.from(calls.token)));
    socket.write(encodeFrame(callFrame.call, 1, Buffer.from("slow\n{}")));
    await sleep(5);
    socket.destroy();
    await once(socket, "close");
  }
  await sleep(200);
  expect(execute).toHaveBeenCalledTimes(32);
  desk.close(calls);
  server.close();
});
