export { BlockDisplays, DisplayBoard, type RichOutput } from "./display-board.ts";
export { RichEvents, type RichPiece } from "./rich-events.ts";
export { type DisplayMessage, displayLimits, longestDisplay, readDisplayMessage } from "./display-messages.ts";
export { bundleSize } from "../output/bundle-size.ts";
