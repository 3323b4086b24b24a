import { needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { testCodeExecutor } from "../src/index.ts";
import { javascript } from "../src/languages/javascript.ts";
import { bash, sh } from "../src/languages/shell.ts";
import { localSubject } from "./local-subject.ts";
import { only } from "./only.ts";

// Cases that use all statements between them. With Python, which the suite prefers, executor-local runs every case.
const telling =
  /^(?:background processes|standard input|files) > |code that|combines both|20 simultaneous calls|symbolic|pauses/;

for (const language of [javascript, bash, sh]) {
  describe(`fixture programs in ${language.name}`, needs("python3", "bash", "node"), () => {
    testCodeExecutor(
      only({ describe, it, afterAll }, (name) => telling.test(name)),
      { ...localSubject, language },
      { concurrent: true },
    );
  });
}
