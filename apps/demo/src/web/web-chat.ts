import { isTaskResult, PendingApprovals } from "@fenced/agentchat";
import { type CodeExecutor, FencedError, inOwnWords } from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import { type ChatTeam, createChatTeam } from "../chat-team.ts";
import type { ChosenModel } from "../choose-model.ts";
import { dataFile } from "../default-task.ts";
import { ownNames } from "../demo-error.ts";
import { ChatLog } from "./chat-log.ts";
import { NewPictures } from "./new-pictures.ts";

/** Settings of the page's chat. */
export interface WebChatSettings {
  readonly codeExecutor: CodeExecutor;
  /** Creates the coder's model: a recording starts again with each chat. */
  readonly chooseModel: () => Promise<ChosenModel>;
  readonly maxMessages: number;
  readonly approve: boolean;
  readonly task: string;
  readonly place: string;
  readonly signal: AbortSignal;
}

const refusedRecording = "You refused the code, and a recorded coder cannot write anything else.";

/** One chat, shown on any number of pages. */
export class WebChat {
  readonly log: ChatLog = new ChatLog();
  readonly #settings: WebChatSettings;
  /** True if the coder is a recording: it cannot react, so a refusal ends the chat. */
  readonly #replayed: boolean;
  readonly #pictures: NewPictures = new NewPictures();
  readonly #approvals: PendingApprovals = new PendingApprovals({ timeoutMs: Infinity });
  #team: ChatTeam | undefined;
  #run: AbortController | undefined;
  #ended: Promise<void> = Promise.resolve();

  private constructor(settings: WebChatSettings, replayed: boolean) {
    this.#settings = settings;
    this.#replayed = replayed;
  }

  static async open(settings: WebChatSettings): Promise<WebChat> {
    const { task, place, codeExecutor } = settings;
    const { description, replayed } = await settings.chooseModel();
    const chat = new WebChat(settings, replayed);
    await codeExecutor.files.upload([dataFile]);
    chat.log.add({ type: "about", model: description, place, task, live: !replayed });
    await chat.#showFiles();
    return chat;
  }

  /** @returns false while a run is in progress. */
  start(task: string): boolean {
    if (this.#run !== undefined) return false;
    const run = new AbortController();
    this.#run = run;
    this.log.add({ type: "running" });
    this.#ended = this.#chat(task, joinSignals(run.signal, this.#settings.signal));
    return true;
  }

  /** @returns false if there is no such open question. */
  answer(id: string, approved: boolean): boolean {
    if (!this.#approvals.pending.some((question) => question.id === id)) return false;
    this.log.add({ type: "decision", id, approved });
    if (!approved && this.#replayed) {
      this.#run?.abort(new Error(refusedRecording));
      return true;
    }
    const reason = approved ? "The user allowed it." : "The user refused to run this code. Ask what they want.";
    this.#approvals.answer(id, { approved, reason });
    return true;
  }

  /** Ends the current run. */
  async stop(): Promise<void> {
    this.#run?.abort(new DOMException("Stopped by the user.", "AbortError"));
    await this.#ended;
  }

  async #chat(task: string, signal: AbortSignal): Promise<void> {
    try {
      // A live coder remembers; a recorded one starts again.
      if (this.#replayed || this.#team === undefined) this.#team = await this.#createTeam();
      const { team, answered } = this.#team;
      for await (const item of team.runStream({ task, signal })) {
        if (isTaskResult(item)) {
          const answer = answered.terminated ? item.messages.at(-1) : undefined;
          const reason = item.stopReason ?? "";
          this.log.add({ type: "ended", reason, failed: false, ...(answer && { answer: answer.id }) });
        } else {
          this.log.add({ type: "message", message: item });
          // The page shows what a program drew right below its output.
          if (item.metadata["exitCode"] !== undefined) await this.#showFiles();
        }
      }
    } catch (error) {
      const reason = FencedError.isInstance(error)
        ? inOwnWords(error, ownNames)
        : String(error instanceof Error ? error.message : error);
      this.log.add({ type: "ended", reason, failed: true });
    } finally {
      this.#run = undefined;
      await this.#showFiles();
    }
  }

  async #createTeam(): Promise<ChatTeam> {
    const { chooseModel, codeExecutor, maxMessages, approve } = this.#settings;
    const { client: modelClient } = await chooseModel();
    const pendingApprovals = approve ? this.#approvals : undefined;
    return createChatTeam({ modelClient, codeExecutor, maxMessages, showsPictures: true, pendingApprovals });
  }

  async #showFiles(): Promise<void> {
    const { files: workspace } = this.#settings.codeExecutor;
    try {
      const files = await workspace.list();
      this.log.add({ type: "files", files: files.slice(0, 200) });
      const paths = await this.#pictures.findNew(workspace, files);
      if (paths.length > 0) this.log.add({ type: "pictures", paths });
    } catch {
      // The executor was stopped, or its workspace is gone: there is nothing to show.
    }
  }
}
