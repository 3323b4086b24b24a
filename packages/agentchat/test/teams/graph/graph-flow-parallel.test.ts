import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  type AgentResponse,
  BaseChatAgent,
  type ChatMessage,
  type GraphFlow,
  type SignalOptions,
  textMessage,
} from "../../../src/index.ts";
import { flow, graphOf, said } from "../../support/graphs.ts";

/** An agent that answers once it is released. */
class Slow extends BaseChatAgent {
  running = false;
  release: () => void = () => {};
  readonly #onStart: () => void;
  fail: Error | undefined;

  constructor(name: string, onStart: () => void) {
    super({ name, description: "slow" });
    this.#onStart = onStart;
  }

  override onMessagesStream(messages: readonly ChatMessage[], options: SignalOptions = {}) {
    return this.turn(messages, options, (signal) => this.#speak(signal));
  }

  async *#speak(signal: AbortSignal): AsyncGenerator<AgentResponse, void, void> {
    this.running = true;
    try {
      await new Promise<void>((resolve, reject) => {
        this.release = resolve;
        signal.addEventListener("abort", () => reject(new Error("enough")), { once: true });
        this.#onStart();
      });
    } finally {
      this.running = false;
    }
    if (this.fail !== undefined) throw this.fail;
    yield { chatMessage: textMessage({ source: this.name, content: this.name }), innerMessages: [] };
  }
}

describe("GraphFlow's parallel agents", () => {
  function pair(): { team: GraphFlow; b: Slow; c: Slow; started: Promise<void> } {
    let begin = (): void => {};
    const started = new Promise<void>((resolve) => {
      begin = resolve;
    });
    let count = 0;
    const onStart = (): void => {
      count += 1;
      if (count === 2) begin();
    };
    const [b, c] = [new Slow("B", onStart), new Slow("C", onStart)];
    return { team: flow(graphOf({ A: ["B", "C"], B: ["D"], C: ["D"], D: [] }), {}, [b, c]), b, c, started };
  }

  it("run at the same time", async () => {
    const { team, b, c, started } = pair();
    const run = said(team, "go");
    await started;
    expect([b.running, c.running]).toEqual([true, true]);
    c.release();
    b.release();
    expect(await run).toBe("A C B D");
  });

  it("are stopped if one of them fails, and repeat their turns in the next run", async () => {
    const { team, b, c, started } = pair();
    b.fail = new Error("broken");
    const run = team.run({ task: "go" });
    await started;
    b.release();
    await expect(run).rejects.toBe(b.fail);
    expect([b.running, c.running]).toEqual([false, false]);
    b.fail = undefined;
    let begun = 0;
    const again = said(team);
    while (begun < 2) {
      await setImmediate();
      begun = [b, c].filter(({ running }) => running).length;
    }
    b.release();
    c.release();
    expect(await again).toBe("B C D");
  });

  it("keep the answer of one agent if the other fails", async () => {
    const { team, b, c, started } = pair();
    c.fail = new Error("broken");
    const items = team.runStream({ task: "go" });
    await items.next();
    await items.next();
    const next = items.next();
    await started;
    b.release();
    expect((await next).value).toMatchObject({ source: "B" });
    const failing = items.next();
    c.release();
    await expect(failing).rejects.toBe(c.fail);
    c.fail = undefined;
    const again = said(team);
    while (!c.running) await setImmediate();
    expect(b.running).toBe(false);
    c.release();
    expect(await again).toBe("C D");
  });

  it("are all stopped by an abort", async () => {
    const { team, b, c, started } = pair();
    const controller = new AbortController();
    const run = team.run({ task: "go", signal: controller.signal });
    await started;
    controller.abort(new Error("enough"));
    await expect(run).rejects.toThrow("enough");
    expect([b.running, c.running]).toEqual([false, false]);
  });
});
