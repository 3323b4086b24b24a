/**
 * Environment variables that every command-line block gets, under the user's own: Python writes UTF-8 and at once, so
 * that output keeps its order and is not lost when the block is killed; pip is quiet and never asks.
 */
export const blockEnvironment: Readonly<Record<string, string>> = {
  PYTHONUNBUFFERED: "1",
  PYTHONUTF8: "1",
  PIP_QUIET: "1",
  PIP_DISABLE_PIP_VERSION_CHECK: "1",
  PIP_NO_INPUT: "1",
};
