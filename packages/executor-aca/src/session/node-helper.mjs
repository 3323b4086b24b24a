/** Makes a session of a NodeLTS pool ready: it is there as long as the session's process lives. */
(() => {
  const mark = Symbol.for("fenced.session");
  /** @type {{ saved: Map<string, string | undefined> } | undefined} */
  const before = Reflect.get(globalThis, mark);
  // What another executor's last block was given is taken back, too.
  const saved = before?.saved ?? new Map();
  /** @param {string} name @param {string | undefined} value */
  const put = (name, value) => {
    if (value === undefined) Reflect.deleteProperty(process.env, name);
    else process.env[name] = value;
  };
  Reflect.set(globalThis, mark, {
    saved,
    /**
     * Prepares a block: sets its environment variables, and takes those of the block before back.
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
