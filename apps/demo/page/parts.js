/** Creates an element. Text is always set as text: what models and programs wrote is never parsed as HTML. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Shows Markdown: fenced code as code, the rest as paragraphs. */
export function markdown(text) {
  const parts = [];
  let rest = text;
  for (
    let fence = /^(`{3,}|~{3,})(\w*)[^\n]*\n/m.exec(rest);
    fence !== null;
    fence = /^(`{3,}|~{3,})(\w*)[^\n]*\n/m.exec(rest)
  ) {
    parts.push(...paragraphs(rest.slice(0, fence.index)));
    rest = rest.slice(fence.index + fence[0].length);
    const end = rest.indexOf(`\n${fence[1]}`);
    const code = end === -1 ? rest : rest.slice(0, end);
    parts.push(codeBlock(code, fence[2]));
    rest = end === -1 ? "" : rest.slice(end + 1 + fence[1].length);
  }
  return [...parts, ...paragraphs(rest)];
}

/** Shows code that can be scrolled with the keyboard. */
export function codeBlock(code, language) {
  const label = language === "" ? "Code" : `Code, ${language}`;
  return element("pre", { tabindex: "0", role: "region", "aria-label": label }, element("code", {}, code));
}

/** Shows a program's output. */
export function outputBlock(label) {
  return element("pre", { tabindex: "0", role: "region", "aria-label": label });
}

/** Shows a picture that a program created. */
export function picture(url, number) {
  const alt = `Picture ${number}, made by the program`;
  return element("figure", {}, element("img", { src: url, alt }));
}

function paragraphs(text) {
  const trimmed = text.trim();
  return trimmed === "" ? [] : trimmed.split(/\n{2,}/).map((part) => element("p", {}, part));
}
