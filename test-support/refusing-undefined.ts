/**
 * The names of the optional properties that cannot be `undefined`. Consumers with `exactOptionalPropertyTypes` could not
 * pass on an option of their own to them.
 */
export type RefusingUndefined<Options> = {
  [Name in keyof Options]-?: Partial<Pick<Options, Name>> extends Pick<Options, Name>
    ? { [Same in Name]: undefined } extends Pick<Options, Name>
      ? never
      : Name
    : never;
}[keyof Options];
