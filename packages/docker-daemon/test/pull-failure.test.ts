import { describe, expect, it } from "vitest";
import { explainPull } from "../src/pull-failure.ts";

describe("a pull that failed", () => {
  it.each([
    [
      "ubuntu/certificates:typo",
      "(HTTP code 404) no such image - manifest for ubuntu/certificates:typo not found: manifest unknown",
      /no such image or tag/,
    ],
    [
      "registry.test/x509:denied",
      'failed to resolve reference "registry.test/x509:denied": registry.test/x509:denied: not found',
      /no such image or tag/,
    ],
    ["x509", "manifest for x509:latest not found: manifest unknown", /no such image or tag/],
    ["ubuntu", "write /etc/ssl/certs/ca-certificates.crt: no space left on device", /disk is full/],
    ["ubuntu", "open /var/lib/x: permission denied; write /var/lib/y: no space left on device", /disk is full/],
    ["ubuntu", "tls: failed to verify certificate: x509: certificate signed by unknown authority", /no certificate/],
    ["ubuntu", "certificate has expired", /no certificate/],
    ["ubuntu", "pull access denied for ubuntu, repository does not exist", /or it is private/],
  ])("of %s with %j is explained by the daemon's words, not by names and paths", (image, said, why) => {
    expect(explainPull(image, said).why).toMatch(why);
  });
});
