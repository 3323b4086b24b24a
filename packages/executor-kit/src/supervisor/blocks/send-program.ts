import { isLiveInput } from "../../processes/program-input.ts";
import { pathBytes } from "../../workspace/path-bytes.ts";
import { framePieces, frameType } from "../wire/wire.ts";
import type { ProgramFeed } from "./program-feed.ts";
import type { ProgramFeeds } from "./program-feeds.ts";
import { type Send, windowBytes } from "./running-programs.ts";
import type { SupervisedProgram } from "./supervised-program.ts";

interface Sending {
  readonly number: number;
  /** By which the supervisor finds its processes. */
  readonly mark: string;
  readonly send: Send;
  readonly feeds: ProgramFeeds;
}

/** Sends what starts a program, and then the input that is written while it runs. */
export function sendProgram(program: SupervisedProgram, { number, mark, send, feeds }: Sending): void {
  const { argv, env, stdin, file, alongside } = program;
  if (file) {
    const head = `${file.keep === true ? "keep" : ""}:${file.name}`;
    sendPieces(send, frameType.file, number, `${head}\0${file.content}`);
  }
  let feed: ProgramFeed | undefined;
  if (isLiveInput(stdin)) feed = feeds.add(number, stdin);
  else if (stdin !== undefined) sendPieces(send, frameType.input, number, stdin);
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const { pty, label = "" } = alongside ?? {};
  const terminal = pty && `terminal ${pty.rows} ${pty.columns}`;
  const how = terminal ?? (feed ? "feed" : "");
  const fields = [mark, windowBytes, how, label, argv.length, ...argv, ...variables, mark];
  send(frameType.run, number, pathBytes(fields.join("\0")));
  void feed?.run();
}

function sendPieces(send: Send, type: number, number: number, content: string | Uint8Array): void {
  for (const piece of framePieces(Buffer.from(content))) send(type, number, piece);
}
