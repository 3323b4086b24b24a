/** A later change may get the same time as one that is younger than this, in milliseconds: clocks of file systems have ticks. */
const tickMs = 100;
/** Where the clock shows whole seconds. */
const coarseTickMs = 2100;

/** Milliseconds until any change gets another time than the last one; `undefined`: it already does. */
export function settlingTime(changedAt: number, now: number): number | undefined {
  const tick = changedAt % 1000 === 0 ? coarseTickMs : tickMs;
  return changedAt < now - tick ? undefined : tick;
}
