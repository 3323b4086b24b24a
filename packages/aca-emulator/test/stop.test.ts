import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";

/** What stands between the start and the stop of an emulator in a program that has to end by itself then. */
const program = (between: string): string => `
  import { Client } from ${JSON.stringify(join(import.meta.dirname, "client.ts"))};
  const client = await Client.open();
  ${between}
  await client.emulator.stop();
`;

describe("stop", needs("python3"), () => {
  it("leaves no timer that would keep the program from its end", { timeout: 120_000 }, async () => {
    const between = `
      const background = { executionType: "Asynchronous", timeoutInSeconds: 80_000 };
      await client.execute("import time; time.sleep(1000)", background);
      await client.execute("1", background);
    `;
    const flags = ["--conditions=@fenced/source", "--import", "tsx", "--input-type=module", "--eval"];
    const child = spawn(process.execPath, [...flags, program(between)], { stdio: "inherit", timeout: 60_000 });
    expect(await once(child, "exit")).toEqual([0, null]);
  });
});
