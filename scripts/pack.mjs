/**
 * Packs every publishable package into the folder in FENCED_TARBALLS, as a release would. Later checks of packages with the
 * same variable (publint, attw, check:installs, check:new-executor) take them from there.
 */
import { mkdirSync } from "node:fs";
import { packAll } from "./packages.mjs";
import { root } from "./workspace.mjs";

const folder = process.env.FENCED_TARBALLS;
if (folder === undefined) throw new Error("Set FENCED_TARBALLS to the folder for the tarballs.");
mkdirSync(folder, { recursive: true });
for (const { name } of packAll(root, folder)) console.log(`packed  ${name}`);
