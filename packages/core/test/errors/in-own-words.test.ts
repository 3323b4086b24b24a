import { inOwnWords, InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";

const names = { host: "--host", docker: "DOCKER_HOST", network: "--network", workDir: "--work-dir" };

describe("inOwnWords", () => {
  it.each([
    [
      'SshCommandLineCodeExecutor: "host" is empty. It must not be empty.',
      "host",
      "--host is empty. It must not be empty.",
    ],
    ['"network.allow[0]" is not valid.', "network", "--network is not valid."],
    ['`workDir` is "~", but only a shell expands `~`.', "workDir", '--work-dir is "~", but only a shell expands `~`.'],
    ["Set the option `docker` or DOCKER_HOST to its address.", "docker", "Set DOCKER_HOST to its address."],
    ['The image "host" has no shell; choose another.', "image", 'The image "host" has no shell; choose another.'],
    ['Choose another one, or set `network: "open"`.', undefined, "Choose another one, or set --network open."],
    ["Leave `workDir` out, or set `hardened: false`.", "hardened", "Leave --work-dir out, or set `hardened: false`."],
  ])("rewords %j", (message, option, expected) => {
    expect(inOwnWords({ message, ...(option !== undefined && { option }) }, names)).toBe(expected);
  });

  it("takes an error", () => {
    const error = new InvalidInputError('"workDir" is a file', { remedy: "Name a directory.", option: "workDir" });
    expect(inOwnWords(error, names)).toBe("--work-dir is a file. Name a directory.");
  });
});
