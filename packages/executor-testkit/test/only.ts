import type { TestRunner } from "../src/index.ts";

/** A runner that defines only those cases whose full name (`group > case`) is wanted. */
export function only(runner: TestRunner, wanted: (name: string) => boolean): TestRunner {
  let current: readonly string[] = [];
  return {
    ...runner,
    describe: (name, define) => {
      const path = [...current, name];
      // A runner may collect what is inside when the group around it has been collected.
      return runner.describe(name, () => {
        const outer = current;
        current = path;
        define();
        current = outer;
      });
    },
    it: (name, options, test) => {
      // The first name is the subject's.
      if (wanted([...current.slice(1), name].join(" > "))) runner.it(name, options, test);
    },
  };
}
