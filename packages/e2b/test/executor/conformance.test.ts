import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs, variant } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { e2bSubject, sandboxServer } from "../support/executor-subject.ts";

const server = await sandboxServer();
const subject = await e2bSubject("E2BCodeExecutor", server);
const stateful = await e2bSubject("E2BCodeExecutor, stateful,", server, { stateful: true });

// Only what does not depend on the supervisor, which the suite in executor-local's sandbox covers: how sandboxes start and end, and the
// connection.
describe("E2B", needs("bubblewrap", "python3", "bash", "node"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    subject,
    variant("stream that nobody reads", "abort", "life cycle", "lost session", "file streams", "leaks"),
  );
  // What the kit does for every place, in a few cases.
  testCodeExecutor(
    { describe, it, afterAll },
    stateful,
    mechanism(
      "state",
      "processes",
      "programs that run",
      "terminals",
      "addresses",
      "watched directories",
      "host functions",
      "network policy",
      "session that outlives its program",
      "submitted run of a session that outlives its program",
    ),
  );
});
