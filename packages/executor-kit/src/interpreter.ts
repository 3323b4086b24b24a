export { asOneModule, cellScripts } from "./languages/javascript/cell-scripts.ts";
export { watchingText } from "./supervisor/python-programs.ts";
export { interpreterText, notebookModule, plotsModule } from "./supervisor/interpreters/interpreter-text.ts";
