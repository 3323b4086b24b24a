export { asOneModule, cellScripts } from "./languages/javascript/cell-scripts.ts";
export { interpreterText, notebookModule, plotsModule } from "./supervisor/interpreters/interpreter-text.ts";
