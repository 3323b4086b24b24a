// Defines a custom team that only chooses who speaks next; the base class does everything else.
import assert from "node:assert/strict";
// #region own-team
import { type AgentMessage, BaseGroupChat, messageToText, type Speakers, UserProxyAgent } from "@fenced/agentchat";
import { ComponentError, type ComponentModel } from "@fenced/core";

/** The chair speaks first and last, and gives the floor to those it names. */
class Panel extends BaseGroupChat {
  protected override selectSpeakers(history: readonly AgentMessage[]): Speakers {
    const last = history.at(-1);
    if (last?.source !== "chair") return ["chair"];
    return this.participantNames.filter((name) => messageToText(last).includes(name));
  }

  override dumpComponent(): ComponentModel {
    throw new ComponentError("Panel cannot be dumped", { remedy: "Create it in code." });
  }
}
// #endregion

const says = (name: string, ...words: string[]): UserProxyAgent =>
  new UserProxyAgent({ name, inputFunc: () => words.shift() });
const team = new Panel({
  participants: [says("chair", "anna and ben?", "Thank you."), says("anna", "Yes."), says("ben", "No.")],
});
const { messages, stopReason } = await team.run({ task: "Is it late?" });
const said = messages.flatMap((message) =>
  message.type === "TextMessage" ? [`${message.source}: ${message.content}`] : [],
);
assert.deepEqual(said, ["user: Is it late?", "chair: anna and ben?", "anna: Yes.", "ben: No.", "chair: Thank you."]);
assert.equal(stopReason, "Nobody speaks next.");
