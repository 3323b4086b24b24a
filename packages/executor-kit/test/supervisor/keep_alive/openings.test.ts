import { needs } from "@fenced/test-support";
import { describe, expect, it, vi } from "vitest";
import { KeptPlace, relayed, type Streams } from "../../support/kept-place.ts";

describe.skipIf(process.platform !== "linux")("a link to a session", needs("python3"), () => {
  it("is opened although connections break before, or just after, the session has answered", async () => {
    const place = await KeptPlace.open();
    const first = await place.connect({ first: place.first });
    await first.link.detach();
    const breaks = [
      (streams: Streams) => relayed(streams, { up: (chunk, cut) => (cut(), chunk.subarray(0, 10)) }),
      // The session has accepted this one.
      (streams: Streams) => {
        let chunks = 0;
        return relayed(streams, {
          down: (chunk, cut) => ((chunks += 1) === 2 ? (cut(), chunk.subarray(0, 10)) : chunk),
        });
      },
    ];
    const connect = (): Promise<Streams> => {
      const broken = breaks.shift();
      return Promise.resolve(broken ? broken(place.attach()) : place.attach());
    };
    const { link, supervisor } = await place.connect({ connect });
    expect(breaks).toEqual([]);
    await supervisor.ping();
    await link.end();
    await place.over();
  });

  it("counts as cut while it is silent, before it is given up", async () => {
    const place = await KeptPlace.open();
    await (await place.connect({ first: place.first })).link.detach();
    let isSilent = false;
    let connections = 0;
    const connect = (): Promise<Streams> => {
      connections += 1;
      const nothing = Buffer.alloc(0);
      return Promise.resolve(relayed(place.attach(), { down: (chunk) => (isSilent ? nothing : chunk) }));
    };
    const { link } = await place.connect({ connect });
    expect(link.isCut).toBe(false);
    isSilent = true;
    await vi.waitFor(() => expect(link.isCut).toBe(true), { timeout: 60_000, interval: 20 });
    expect(connections).toBe(1);
    isSilent = false;
    await vi.waitFor(() => expect(link.isCut).toBe(false), { timeout: 60_000 });
    await link.end();
    await place.over();
  });
});
