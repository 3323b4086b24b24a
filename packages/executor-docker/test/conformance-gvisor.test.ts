import { randomUUID } from "node:crypto";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, nightly } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { dockerSubject } from "./support/docker-subject.ts";
import { pythonImage } from "./support/images.ts";

// Another kernel: everything that the supervisor asks a kernel for could differ.
describe("Docker Engine", { ...needs("docker", "gvisor"), ...nightly }, () => {
  const image = `${pythonImage}-${randomUUID()}`;
  // Debian 12's gVisor cannot keep sessions that outlive their program: see the README, "A kernel between code and the machine".
  const { connect: _, ...subject } = dockerSubject("in gVisor", pythonImage, image);
  testCodeExecutor(
    { describe, it, afterAll },
    {
      ...subject,
      create: (options) => new DockerCommandLineCodeExecutor({ image, network: "none", runtime: "runsc", ...options }),
    },
    {
      groups: ["code", "standard input", "timeout", "abort", "background processes", "hostile files", "leaks"],
      cases: "smoke",
    },
  );
});
