/** The languages of user functions. */
export type FunctionLanguage = "python" | "javascript";
