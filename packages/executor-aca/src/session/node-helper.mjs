/** Prepares a session of a NodeLTS pool; its object exists as long as the session's process lives. */
(() => {
  const mark = Symbol.for("fenced.session");
  /** @type {{ saved: Map<string, string | undefined> } | undefined} */
  const before = Reflect.get(globalThis, mark);
  // Also undoes the variables of another executor's last block.
  const saved = before?.saved ?? new Map();
  /** @param {string} name @param {string | undefined} value */
  const put = (name, value) => {
    if (value === undefined) Reflect.deleteProperty(process.env, name);
    else process.env[name] = value;
  };
  Reflect.set(globalThis, mark, {
    saved,
    /**
     * Prepares a block: undoes the environment variables of the block before, and sets its own.
     *
     * @param {Record<string, string>} variables
     */
    begin(variables) {
      for (const [name, value] of saved) put(name, value);
      saved.clear();
      for (const [name, value] of Object.entries(variables)) {
        saved.set(name, process.env[name]);
        put(name, value);
      }
      return null;
    },
  });
  process.chdir("/mnt/data");
  return null;
})();
