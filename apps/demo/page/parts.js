/** Creates an element. Text is always set as text: what models and programs wrote is never parsed as HTML. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
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

/** Shows a picture that a program created. As an image, it can neither run scripts nor load anything. */
export function picture(url, number, name = "") {
  const alt = `Picture ${number}, made by the program${name === "" ? "" : `: ${name}`}`;
  const caption = name === "" ? [] : [element("figcaption", {}, name)];
  return element("figure", {}, element("img", { src: url, alt }), ...caption);
}

/** The same as those of `showHidden` in @fenced/core, which a page without a bundler cannot import. */
const hidingCharacters =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u2800\ufff9-\ufffb\u{1d159}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/gu;

/** Shows characters that could hide code. */
export function visible(code) {
  return code.replaceAll(hidingCharacters, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}
