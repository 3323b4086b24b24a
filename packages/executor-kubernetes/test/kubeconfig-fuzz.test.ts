import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fc, fuzz, outcomeOf } from "@fenced/test-support/fuzz";
import { expect, onTestFinished, test } from "vitest";
import { findCluster } from "../src/cluster/kubeconfig.ts";

/** Values of the kinds that a file can hold, and texts that YAML reads in its own way. */
const value = fc.oneof(
  fc.constantFrom(
    null,
    "",
    "name",
    "https://127.0.0.1:6443",
    "http://[::1",
    "~",
    "yes",
    "bm8=",
    "/dev/null",
    "no such file",
    0,
    true,
  ),
  fc.jsonValue({ maxDepth: 2 }),
);
const record = (keys: readonly string[]) =>
  fc.record(Object.fromEntries(keys.map((key) => [key, value])), { requiredKeys: [] });
const cluster = record([
  "server",
  "certificate-authority",
  "certificate-authority-data",
  "insecure-skip-tls-verify",
  "proxy-url",
]);
const user = record([
  "token",
  "tokenFile",
  "client-certificate-data",
  "client-key-data",
  "client-certificate",
  "username",
  "as",
  "auth-provider",
]);
const list = (name: string, entry: fc.Arbitrary<unknown>) =>
  fc.oneof(
    fc.array(fc.record({ name: fc.constantFrom("name", "", "b"), [name]: fc.oneof(entry, value) }), { maxLength: 2 }),
    value,
  );
const config = fc.record(
  {
    "current-context": value,
    clusters: list("cluster", cluster),
    users: list("user", user),
    contexts: list("context", record(["cluster", "user", "namespace"])),
  },
  { requiredKeys: [] },
);

test("any kubeconfig names a cluster, or is refused with an error that says what to do", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "kubeconfig-fuzz-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "config");
  fuzz(
    fc.property(
      fc.oneof(
        config.map((each) => JSON.stringify(each)),
        fc.string(),
        fc.constant("a: &a [*a, *a]"),
      ),
      (text) => {
        writeFileSync(file, text);
        const outcome = outcomeOf(() => (findCluster({ kubeconfig: file }).server instanceof URL ? "URL" : "nothing"));
        expect(["URL", "InvalidInputError", "BackendUnavailableError"]).toContain(outcome);
      },
    ),
  );
});
