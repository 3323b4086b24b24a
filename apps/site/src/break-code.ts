import type { MarkdownRenderer } from "vitepress";

/**
 * Lets code in a line of text break where its words end, such as before a capital letter or after a slash, so that narrow
 * columns need not break it in the middle of a word. What readers copy stays the same.
 */
export function breakCode(markdown: MarkdownRenderer): void {
  const render = markdown.renderer.rules.code_inline;
  markdown.renderer.rules.code_inline = (...args) => {
    const html = render?.(...args) ?? "";
    return html.replace(/(<code[^>]*>)(.*)(<\/code>)/s, (_, start: string, text: string, end: string) => {
      // An entity such as &lt; is one character.
      const broken = text.replaceAll(
        /(&[#\w]+;)|([a-z\d])(?=[A-Z])|(?<=[\w)\]}])([/._,=:|-])(?=\w)/g,
        (piece, entity?: string) => (entity === undefined ? `${piece}<wbr>` : piece),
      );
      return `${start}${broken}${end}`;
    });
  };
}
