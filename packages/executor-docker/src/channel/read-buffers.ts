/** The most that one read takes. */
const bufferSize = 262_144;
/** Buffers kept for later reads; more are left to the garbage collector. */
const mostFree = 8;

/** Memory that is read into again when nobody uses what it holds. */
export interface SharedMemory {
  /** Somebody keeps a piece of it, for longer than the call in which it was handed out. */
  hold(): void;
  /** One of those who keep a piece has done with it. */
  release(): void;
}

/** Buffers for a connection, used again and again: a gigabyte of output makes no garbage. */
export class ReadBuffers {
  readonly #free: Buffer<ArrayBuffer>[] = [];
  #next = Buffer.allocUnsafeSlow(bufferSize);

  /** The buffer for the next read. */
  get next(): Buffer {
    return this.#next;
  }

  /** Hands out what was read into `next`. */
  filled(count: number, take: (bytes: Buffer, memory: SharedMemory) => void): void {
    const buffer = this.#next;
    let holders = 0;
    const hold = (): void => {
      holders += 1;
    };
    const release = (): void => {
      holders -= 1;
      if (holders === 0 && this.#free.length < mostFree) this.#free.push(buffer);
    };
    take(buffer.subarray(0, count), { hold, release });
    if (holders > 0) this.#next = this.#free.pop() ?? Buffer.allocUnsafeSlow(bufferSize);
  }
}
