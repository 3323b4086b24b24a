/** The languages in which functions can be offered to code blocks. */
export type FunctionLanguage = "python" | "javascript";
