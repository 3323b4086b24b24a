import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { ClientRequest } from "node:http";
import { needs } from "@fenced/test-support";
import { TelemetryRecorder, trace } from "@fenced/test-support/telemetry";
import { describe, expect, it } from "vitest";
import { createExecutor } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";

const containerName = `fenced-test-${process.pid}-telemetry`;
const requests = "http.client.request.start";

describe("telemetry", needs("docker"), () => {
  it("pings the daemon outside of any span", async () => {
    await using recorder = new TelemetryRecorder();
    // Its work directory is in a volume, so there is no direct channel and the daemon is watched.
    const executor = createExecutor({ containerName, stopContainer: false });
    const pings: (string | undefined)[] = [];
    const listen = (message: unknown) => {
      if (typeof message !== "object" || message === null || !("request" in message)) return;
      if (!(message.request instanceof ClientRequest) || !message.request.path.endsWith("/_ping")) return;
      pings.push(trace.getActiveSpan()?.spanContext().spanId);
    };
    subscribe(requests, listen);
    try {
      await executor.start();
      const before = pings.length;
      await expect.poll(() => pings.length, { timeout: 60_000 }).toBeGreaterThan(before);
      expect(new Set(pings.slice(before))).toEqual(new Set([undefined]));
    } finally {
      unsubscribe(requests, listen);
      await executor.stop();
      await docker("rm", "--force", "--volumes", containerName);
    }
    expect(recorder.span("fenced.executor.start").attributes).not.toHaveProperty("error.type");
  });
});
