import { randomUUID } from "node:crypto";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { dockerSubject } from "./support/docker-subject.ts";
import { pythonImage } from "./support/images.ts";
import { WarmExecutor } from "./support/warm-executor.ts";

// Python blocks are forked from a waiting interpreter; everything else is the same as in the suite without it.
describe("Docker Engine", needs("docker"), () => {
  const image = `${pythonImage}-${randomUUID()}`;
  testCodeExecutor(
    { describe, it, afterAll },
    {
      ...dockerSubject("with warm Python", pythonImage, image),
      create: (options) => new WarmExecutor({ image, network: "none", warm: {}, ...options }),
    },
    mechanism("standard input", "python functions", "abort", "background processes", "leaks"),
  );
  // Otherwise the suite would prove nothing.
  afterAll(() => {
    if (WarmExecutor.sessions === 0) throw new Error("No session had a waiting interpreter.");
  });
});
