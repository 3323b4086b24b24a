import { markdown, plain } from "./markdown.js";
import { codeBlock, element, outputBlock, picture, visible } from "./parts.js";

const token = location.hash.slice(1);
const byId = (id) => document.getElementById(id);
const [about, status, chat, task, run, stop] = ["about", "status", "chat", "task", "run", "stop"].map(byId);

/** Texts and output in progress, by message id or agent name. */
const texts = new Map();
const outputs = new Map();
const questions = new Map();
/** Cards of agents' texts, by message id. */
const said = new Map();
/** The last card, which has what was made by the program that ran last. */
let lastCard;
let pictures = 0;
let seen = 0;

function call(path, body) {
  const headers = { authorization: `Bearer ${token}` };
  const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  return fetch(path, init);
}

async function tell(path, body) {
  const response = await call(path, body);
  if (!response.ok) say(await response.text());
}

/** Announces something on the screen and to screen readers. */
function say(text) {
  if (status.textContent !== text) status.textContent = text;
}

function addCard(source, note, look = "") {
  byId("empty").hidden = true;
  const heading = element("h3", {}, source);
  if (note !== "") heading.append(" ", element("span", { class: `note ${look}` }, note));
  const article = element("article", {}, heading);
  const atEnd = innerHeight + scrollY >= document.body.offsetHeight - 160;
  chat.append(element("li", {}, article));
  lastCard = article;
  if (atEnd) article.scrollIntoView({ block: "nearest" });
  return article;
}

function setBody(article, parts) {
  while (article.childNodes.length > 1) article.lastChild.remove();
  article.append(...parts);
}

function showChunk({ source, fullMessageId, content }) {
  let open = texts.get(fullMessageId);
  if (open === undefined) {
    open = { article: addCard(source, ""), text: "" };
    texts.set(fullMessageId, open);
    say(`${source} is writing.`);
  }
  open.text += content;
  if (open.isDue) return;
  open.isDue = true;
  // Not for each chunk: a chat that is shown again has thousands at once.
  requestAnimationFrame(() => {
    open.isDue = false;
    if (texts.get(fullMessageId) === open) setBody(open.article, markdown(open.text));
  });
}

function showOutput({ source, stream, text }) {
  let block = outputs.get(source);
  if (block === undefined) {
    block = outputBlock(`Output of ${source}`);
    addCard(source, "output").append(block);
    outputs.set(source, block);
    say(`${source}'s program is printing.`);
  }
  const atEnd = block.scrollTop + block.clientHeight >= block.scrollHeight - 8;
  block.append(element("span", { class: stream }, text));
  if (atEnd) block.scrollTop = block.scrollHeight;
}

function showMessage(message) {
  const { source, metadata, id } = message;
  const exitCode = metadata.exitCode;
  const note = exitCode === undefined ? "" : `exit code ${exitCode}`;
  const text = textOf(message);
  const open = texts.get(id);
  texts.delete(id);
  const live = exitCode === undefined ? undefined : outputs.get(source);
  if (live !== undefined) outputs.delete(source);
  const look = exitCode === "0" ? "good" : "bad";
  const article = open?.article ?? addCard(source, note, look);
  if (open === undefined && exitCode !== undefined) showResult(article, text, live);
  else setBody(article, source === "user" ? [plain(text)] : markdown(text));
  said.set(id, { article, text });
  for (const part of Array.isArray(message.content) ? message.content : []) {
    if (part.type === "image" && part.url.startsWith("data:image/")) article.append(picture(part.url, ++pictures));
  }
  if (note !== "") say(`${source}: ${note}.`);
}

/** Shows a program's result, without the output that was shown while it ran. */
function showResult(article, text, live) {
  const shown = live?.textContent.trim() ?? "";
  if (shown !== "" && text.trim() === shown) {
    article.append(element("p", { class: "note" }, "Its output is above."));
    return;
  }
  const rest = shown === "" ? text : text.replace(shown, "").replace(/Its output:\s*$/, "Its output is above.");
  const block = outputBlock("Result of the program");
  block.append(rest.trim());
  article.append(block);
}

function textOf({ content }) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return JSON.stringify(content, null, 2);
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

function showApproval({ source, id, blocks }) {
  const article = addCard(source, "asks for approval");
  article.parentElement.classList.add("waiting");
  const heading = article.firstChild;
  heading.tabIndex = -1;
  const allow = element("button", { type: "button", class: "primary" }, "Run this code");
  const refuse = element("button", { type: "button" }, "Refuse");
  allow.addEventListener("click", () => tell("/answer", { id, approved: true }));
  refuse.addEventListener("click", () => tell("/answer", { id, approved: false }));
  for (const { article: other } of said.values()) moveCode(other, blocks);
  const buttons = element(
    "div",
    { class: "buttons", role: "group", "aria-label": "Decide on this code" },
    allow,
    refuse,
  );
  article.append(...blocks.map(({ language, code }) => codeBlock(visible(code), language)), buttons);
  questions.set(id, { article, buttons });
  say(`The ${source} waits for your approval.`);
  if (document.activeElement !== task) heading.focus();
}

/** Leaves code out of the message that it came with: what is approved is shown once, where it is approved. */
function moveCode(article, blocks) {
  for (const block of article.querySelectorAll("pre")) {
    if (blocks.some(({ code }) => code.trim() === block.textContent.trim())) {
      block.replaceWith(element("p", { class: "note" }, "The code is below."));
    }
  }
}

function showDecision({ id, approved }) {
  const question = questions.get(id);
  questions.delete(id);
  if (question === undefined) return;
  question.article.parentElement.classList.remove("waiting");
  question.buttons.replaceWith(element("p", { class: approved ? "good" : "bad" }, approved ? "Approved." : "Refused."));
}

function showFiles(files) {
  byId("no-files").hidden = files.length > 0;
  byId("files").replaceChildren(
    ...files.map(({ path, size }) => {
      const button = element("button", { type: "button" }, `${path} (${sizeOf(size)})`);
      button.setAttribute("aria-label", `Download ${path}, ${sizeOf(size)}`);
      button.addEventListener("click", () => download(path));
      return element("li", {}, button);
    }),
  );
}

/** Shows the pictures that a program wrote to files. */
async function showPictures(paths) {
  const article = lastCard;
  for (const path of paths) {
    const place = element("p", { class: "note" }, `${path} …`);
    article.append(place);
    const content = await pictureFile(path);
    if (content === undefined) place.textContent = `${path} is no longer there, or too large to show.`;
    else place.replaceWith(picture(URL.createObjectURL(content), ++pictures, path));
  }
}

async function pictureFile(path) {
  const response = await call(`/file?path=${encodeURIComponent(path)}`);
  // The program may have made it larger meanwhile.
  const isSmall = Number(response.headers.get("content-length") ?? Infinity) <= 4_000_000;
  if (response.ok && isSmall) return response.blob().catch(() => undefined);
  await response.body?.cancel();
  return undefined;
}

/** Makes the answer stand out, and leaves out the word that ended the chat. */
function showAnswer({ article, text }) {
  setBody(article, markdown(text.replace(/\s*\bTERMINATE\b\W*$/, "")));
  article.firstChild.textContent = "Answer";
  article.parentElement.classList.add("answer");
  article.scrollIntoView({ block: "nearest" });
}

function sizeOf(bytes) {
  return bytes < 1024
    ? `${bytes} B`
    : bytes < 1024 ** 2
      ? `${Math.round(bytes / 1024)} kB`
      : `${(bytes / 1024 ** 2).toFixed(1)} MB`;
}

async function download(path) {
  const response = await call(`/file?path=${encodeURIComponent(path)}`);
  if (!response.ok) return say(await response.text());
  const content = await response.blob().catch(() => undefined);
  if (content === undefined) return say("The file changed while it was sent. Try again.");
  const url = URL.createObjectURL(content);
  element("a", { href: url, download: path.split("/").at(-1) }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function setRunning(isRunning) {
  run.disabled = isRunning;
  stop.disabled = !isRunning;
}

const show = {
  about({ model, place, task: first, live }) {
    about.textContent = `${model} ${place}`;
    if (task.value === "") task.value = first;
    task.readOnly = !live;
    if (!live) byId("hint").textContent = "The recorded coder has this one task. Ctrl+Enter runs it.";
    setRunning(false);
  },
  running() {
    setRunning(true);
    say("The chat is running.");
  },
  message({ message }) {
    if (message.type === "ModelClientStreamingChunkEvent") showChunk(message);
    else if (message.type === "CodeOutputEvent") showOutput(message);
    else if (message.type === "CodeApprovalRequestEvent") showApproval(message);
    else if ("content" in message) showMessage(message);
  },
  decision: showDecision,
  files: ({ files }) => showFiles(files),
  pictures: ({ paths }) => void showPictures(paths),
  ended({ reason, failed, answer }) {
    setRunning(false);
    texts.clear();
    outputs.clear();
    for (const { article, buttons } of questions.values()) {
      article.parentElement.classList.remove("waiting");
      buttons.replaceWith(element("p", { class: "note" }, "Not decided."));
    }
    questions.clear();
    const end = addCard(failed ? "The chat failed" : "The chat is over", "");
    end.append(plain(reason));
    if (!failed) end.parentElement.classList.add("end");
    if (said.has(answer)) showAnswer(said.get(answer));
    said.clear();
    say(failed ? "The chat failed." : "The chat is over.");
  },
};

/** Follows the chat from the first item that this page has not shown yet. */
async function follow() {
  const response = await call(`/events?from=${seen}`);
  if (!response.ok) {
    about.textContent = await response.text();
    return false;
  }
  let rest = "";
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  for (let step = await reader.read(); !step.done; step = await reader.read()) {
    const lines = (rest + decoder.decode(step.value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      seen += 1;
      const item = JSON.parse(line);
      show[item.type](item);
    }
  }
  return true;
}

async function followForever() {
  for (;;) {
    try {
      if (!(await follow())) return;
    } catch {
      // The demo has ended, or this computer was asleep: try again.
    }
    say("Lost the connection to the demo; trying again.");
    await new Promise((resolve) => {
      setTimeout(resolve, 1500);
    });
  }
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  void tell("/task", { task: task.value });
});
task.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
stop.addEventListener("click", () => void tell("/stop", {}));
void followForever();
