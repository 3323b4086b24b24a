/** Timers, which fire when the surrounding process calls `run`. */
export function makeTimers() {
  /** @type {Map<number, { at: number, every: number | undefined, call: () => void, held: boolean, handle: object }>} */
  const waiting = new Map();
  let last = 0;
  const handleOf = (/** @type {number} */ id) => {
    const hold = (/** @type {boolean} */ held) => {
      const timer = waiting.get(id);
      if (timer) timer.held = held;
      return handle;
    };
    const handle = {
      id,
      ref: () => hold(true),
      unref: () => hold(false),
      hasRef: () => waiting.get(id)?.held === true,
      [Symbol.toPrimitive]: () => id,
    };
    return handle;
  };
  /** @type {(call: (...values: any[]) => void, delay: unknown, repeats: boolean, values: unknown[]) => object} */
  const add = (call, delay, repeats, values) => {
    if (typeof call !== "function") throw new TypeError('The "callback" argument must be of type function.');
    const milliseconds = Math.max(1, Number(delay) || 1);
    last += 1;
    const handle = handleOf(last);
    const every = repeats ? milliseconds : undefined;
    waiting.set(last, { at: Date.now() + milliseconds, every, call: () => call(...values), held: true, handle });
    return handle;
  };
  const clear = (/** @type {any} */ handle) => void waiting.delete(Number(handle ?? -1));
  const setTimeout = (/** @type {any} */ call, /** @type {any} */ delay, /** @type {any[]} */ ...values) =>
    add(call, delay, false, values);
  const setImmediate = (/** @type {any} */ call, /** @type {any[]} */ ...values) => add(call, 0, false, values);
  const globals = {
    setTimeout,
    setInterval: (/** @type {any} */ call, /** @type {any} */ delay, /** @type {any[]} */ ...values) =>
      add(call, delay, true, values),
    setImmediate,
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  };
  const wait = (/** @type {number} */ delay, /** @type {unknown} */ value) =>
    new Promise((resolve) => {
      setTimeout(() => resolve(value), delay);
    });
  return {
    globals,
    wait,
    clear: () => waiting.clear(),
    /** Runs the first timer that is due. Returns the milliseconds until one is due; -1: no timer keeps the program running. */
    run() {
      const next = [...waiting].reduce(
        (/** @type {any} */ first, each) => (first && first[1].at <= each[1].at ? first : each),
        undefined,
      );
      if (!next || ![...waiting.values()].some(({ held }) => held)) return -1;
      const [id, timer] = next;
      const left = timer.at - Date.now();
      if (left > 0) return left;
      if (timer.every === undefined) waiting.delete(id);
      else timer.at = Date.now() + timer.every;
      timer.call();
      return 0;
    },
  };
}

/**
 * As much of `Atomics` as a single thread needs; programs use `wait` to sleep.
 *
 * @param {(fields: object) => unknown} ask
 */
export function makeAtomics(ask) {
  /** @type {(change: (old: any, value: any) => any) => (array: any, index: number, value: any) => any} */
  const changes = (change) => (array, index, value) => {
    const old = array[index];
    array[index] = change(old, value);
    return old;
  };
  return {
    wait(/** @type {any} */ array, /** @type {number} */ index, /** @type {unknown} */ value, milliseconds = Infinity) {
      if (array[index] !== value) return "not-equal";
      if (milliseconds === Infinity) throw new Error("Nothing can wake this program: there is only one thread.");
      ask({ op: "sleep", milliseconds: Math.max(0, Number(milliseconds)) });
      return "timed-out";
    },
    notify: () => 0,
    load: (/** @type {any} */ array, /** @type {number} */ index) => array[index],
    store: (/** @type {any} */ array, /** @type {number} */ index, /** @type {unknown} */ value) =>
      (array[index] = value),
    add: changes((old, value) => old + value),
    sub: changes((old, value) => old - value),
    and: changes((old, value) => old & value),
    or: changes((old, value) => old | value),
    xor: changes((old, value) => old ^ value),
    exchange: changes((_, value) => value),
  };
}
