import { randomUUID } from "node:crypto";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { dockerSubject } from "./support/docker-subject.ts";
import { hostCommand } from "./support/host-command.ts";
import { pythonImage } from "./support/images.ts";

describe("Docker Engine", needs("docker"), () => {
  const image = `${pythonImage}-${randomUUID()}`;
  testCodeExecutor(
    { describe, it, afterAll },
    {
      ...dockerSubject("stateful", pythonImage, image),
      hostCommand: [...hostCommand(image), "", "stateful"],
      create: (options) => new DockerCommandLineCodeExecutor({ image, network: "none", stateful: true, ...options }),
    },
    mechanism("code", "output", "standard input", "stream", "timeout", "state", "lost session", "host functions"),
  );
});
