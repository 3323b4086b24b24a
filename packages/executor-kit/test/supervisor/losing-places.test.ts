import { DirectoryFiles, PlaceGone } from "@fenced/executor-kit";
import { type Connection, Loss, type PlaceWorkspace, SupervisedBackend } from "@fenced/executor-kit/supervisor";
import { expect, it } from "vitest";
import { TextSink } from "../support/text-sink.ts";

const workspace: PlaceWorkspace = {
  path: "/nowhere",
  files: new DirectoryFiles("."),
  filesStay: false,
  writeBlock: () => ({ path: "/nowhere/block" }),
  settle: () => undefined,
};

it("a block that begins while it is found out why its place is lost goes to the next place", async () => {
  let tell = (_: Error): void => {};
  const explained = new Promise<Error>((resolve) => {
    tell = resolve;
  });
  const ran: string[] = [];
  const loss = new Loss(
    () => explained,
    () => {},
  );
  const runner = {
    run: () => {
      ran.push("program");
      return Promise.resolve({ exitCode: 0, outOfMemory: false });
    },
    reset: () => Promise.resolve(),
    fail: () => {},
  };
  const connection: Connection = {
    runner,
    languages: { found: new Map([["python", { extension: "py", command: ["python3"] }]]), missing: new Map() },
    workspace,
    directory: "/nowhere",
    lost: loss.lost,
    isLosing: () => loss.isReported,
    end: () => Promise.resolve(),
  };
  const settings = {
    id: "test",
    env: {},
    functions: [],
    warm: false,
    stateful: false,
    keepFiles: false,
    installsApart: true,
    network: undefined,
    memorySentence: "",
  } as const;
  const connector = { connect: () => Promise.resolve(connection), close: () => Promise.resolve() };
  const place = await new SupervisedBackend(settings, connector).open({
    signal: new AbortController().signal,
    isRestart: false,
  });
  const block = { language: "python", code: "", env: {}, timeoutMs: Infinity };
  expect(await place.run(block, new TextSink())).toMatchObject({ exitCode: 0 });
  void loss.report(new Error("noticed"));
  const running = place.run(block, new TextSink());
  tell(new Error("explained"));
  await expect(running).rejects.toThrow(PlaceGone);
  await expect(running).rejects.toThrow("explained");
  expect(ran).toEqual(["program"]);
});
