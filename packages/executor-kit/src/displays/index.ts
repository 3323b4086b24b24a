export { BlockDisplays, DisplayBoard, type RichOutput } from "./display-board.ts";
