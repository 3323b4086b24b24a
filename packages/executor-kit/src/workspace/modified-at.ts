/**
 * A file's modification time, from a source that may say anything: code can set times that no `Date` can have.
 *
 * @param milliseconds - since 1970.
 * @returns an empty object if there is no such time.
 */
export function modifiedAt(milliseconds: number): { readonly modifiedAt?: Date } {
  const time = new Date(milliseconds);
  return Number.isNaN(time.getTime()) ? {} : { modifiedAt: time };
}
