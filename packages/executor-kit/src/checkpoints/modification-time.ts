/** What a `Date` can have, in milliseconds from 1970. Code can set any time, and some places refuse a later one. */
const furthest = 8.64e15;

/** The nearest time that every place can be asked to set. */
export function clampedTime(time: number): number {
  return Number.isNaN(time) ? 0 : Math.min(furthest, Math.max(-furthest, time));
}
