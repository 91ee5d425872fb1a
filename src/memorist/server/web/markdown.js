// Markdown of notes, articles and answers as HTML: no HTML of its own, no images, and only
// addresses of the web and of mail become links. The libraries are read when they are first needed.

import { html, useEffect, useState } from "./ui.js";

const LINK = /^(https?:|mailto:)/i;
const TAGS =
  "p br hr h1 h2 h3 h4 h5 h6 strong em s code pre blockquote ul ol li a table thead tbody tr th td";
const RULES = {
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["href", "title", "start", "target", "rel"],
  ALLOWED_URI_REGEXP: LINK,
};

let libraries = null;
let toHtml = null;

async function load() {
  const [{ default: markdownIt }] = await Promise.all([
    import("./vendor/markdown-it.js"),
    import("./vendor/purify.js"),
  ]);
  const parser = markdownIt({ html: false, linkify: true }).disable("image");
  parser.validateLink = (url) => LINK.test(url);
  const away = { target: "_blank", rel: "noopener noreferrer" };
  parser.core.ruler.push("safe", ({ tokens }) => {
    const all = tokens.flatMap((token) => [token, ...(token.children ?? [])]);
    for (const token of all) {
      if (token.type === "link_open") Object.entries(away).forEach((pair) => token.attrPush(pair));
      // The alignment of a column is a style, which the content security policy forbids.
      token.attrs = token.attrs?.filter(([name]) => name !== "style") ?? null;
    }
  });
  toHtml = (text) => globalThis.DOMPurify.sanitize(parser.render(text), RULES);
}

// A text as Markdown; as plain text until the libraries are there.
export function Markdown({ text }) {
  const [ready, setReady] = useState(toHtml !== null);
  useEffect(() => {
    libraries ??= load();
    libraries.then(
      () => setReady(true),
      () => {
        libraries = null; // the text stays as it is, and the next one tries again
      },
    );
  }, []);
  if (!ready) return html`<div class="text">${text}</div>`;
  return html`<div class="markdown" dangerouslySetInnerHTML=${{ __html: toHtml(text) }}></div>`;
}
