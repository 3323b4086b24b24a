import { randomUUID } from "node:crypto";
import { type ExecutorSubject, testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { dockerSubject } from "./support/docker-subject.ts";
import { hostCommand } from "./support/host-command.ts";
import { pythonImage } from "./support/images.ts";

describe("Docker Engine", needs("docker"), () => {
  const image = `${pythonImage}-${randomUUID()}`;
  const subject: ExecutorSubject = {
    ...dockerSubject("stateful", pythonImage, image),
    hostCommand: [...hostCommand(image), "", "stateful"],
    create: (options) => new DockerCommandLineCodeExecutor({ image, network: "none", stateful: true, ...options }),
  };
  // Here, there are variables to lose.
  testCodeExecutor({ describe, it, afterAll }, subject, { groups: ["session that outlives its program"] });
  testCodeExecutor(
    { describe, it, afterAll },
    subject,
    mechanism(
      "code",
      "output",
      "standard input",
      "stream",
      "timeout",
      "state",
      "lost session",
      "submitted run of a session that outlives its program",
      "host functions",
    ),
  );
});
