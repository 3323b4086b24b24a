/**
 * Builds the package in the current directory; those that it uses have to be built already. With `npm run build`, turbo builds all
 * in the right order, and only what has changed.
 */
import { compile } from "./workspace.mjs";

compile(process.cwd());
