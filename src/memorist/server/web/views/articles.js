// Articles: documents that agents quote from.

import { api } from "../api.js";
import { number, plural } from "../format.js";
import { useKeys } from "../keys.js";
import { Markdown } from "../markdown.js";
import { go, href } from "../route.js";
import {
  Dialog,
  Empty,
  Loaded,
  Problem,
  Skeleton,
  Time,
  VirtualList,
  attempt,
  html,
  say,
  useEffect,
  usePages,
  useRead,
  useRef,
  useState,
} from "../ui.js";

export default function Articles({ route }) {
  const { agent, article, question = "" } = route.query;
  const pages = usePages("articles", { agent });
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState(null);
  const [progress, follow] = useProgress();
  const changed = () => {
    pages.reload();
    follow();
  };
  useKeys(article ? {} : { a: () => setAdding(true) });
  return html`<div class="pane">
    ${
      article
        ? html`<${Open} id=${article} agent=${agent} onRemove=${setRemoving} />`
        : html`<${List}
            pages=${pages}
            question=${question}
            agent=${agent}
            onAdd=${() => setAdding(true)}
            onRemove=${setRemoving}
          />`
    }
    ${progress && html`<${Progress} ...${progress} />`}
    ${adding && html`<${Add} agent=${agent} onClose=${() => setAdding(false)} onAdded=${changed} />`}
    ${
      removing &&
      html`<${Remove}
        article=${removing}
        agent=${agent}
        onClose=${() => setRemoving(null)}
        onChanged=${changed}
      />`
    }
  </div>`;
}

function List({ pages, question, agent, onAdd, onRemove }) {
  return html`<div class="toolbar">
      <form
        class="grow"
        onSubmit=${(event) => {
          event.preventDefault();
          go({ question: new FormData(event.target).get("question") });
        }}
      >
        <input
          name="question"
          type="search"
          aria-label="Ask the articles"
          placeholder="Ask the articles"
          value=${question}
        />
      </form>
      <button class="primary" title="add an article (a)" onClick=${onAdd}>Add</button>
    </div>
    ${
      question
        ? html`<${Answers} question=${question} agent=${agent} />`
        : pages.error
          ? html`<${Problem} error=${pages.error} retry=${pages.reload} />`
          : !pages.ready && !pages.items.length
            ? pages.slow && html`<${Skeleton} />`
            : html`<${VirtualList}
                label="Articles"
                items=${pages.items}
                onMore=${pages.more}
                onOpen=${(item) => go({ article: item.id })}
                keys=${{ f: onRemove }}
                empty=${
                  pages.ready &&
                  html`<${Empty} command="memorist ingest handbook.md"
                    >Articles are documents that an agent may quote from. There are none yet.<//
                  >`
                }
                render=${(item) =>
                  html`<span class="grow clip">${item.title}</span>
                    <span class="meta uri clip">${item.uri}</span>
                    <span class="meta">${number(item.chars)} characters</span>
                    <${Time} at=${item.created_at} />`}
              />`
    }`;
}

// What the articles say to a question: the passages that an agent would get.
function Answers({ question, agent }) {
  const read = useRead(
    (signal) =>
      api.post("articles/retrieve", { query: question, agent, deadline_ms: null }, { signal }),
    [question, agent],
  );
  return html`<div class="scroll">
    <${Loaded} read=${read}
      >${({ found, tokens }) =>
        html`<p class="remark meta">
            ${plural(found.length, "article")}, ${number(tokens)} tokens ·
            <a href=${href({ question: null })}>all articles</a>
          </p>
          ${found.map(
            ({ citation, article }) =>
              html`<section class="quotation">
                <h2>
                  <a href=${href({ article: article.id, question: null })}>${citation}</a>
                </h2>
                <p class="text">${article.text}</p>
              </section>`,
          )}
          ${!found.length && html`<${Empty}>No article bears on this question.<//>`}`}<//
    >
  </div>`;
}

function Open({ id, agent, onRemove }) {
  const read = useRead(
    (signal) => api.get(`articles/${encodeURIComponent(id)}`, { agent }, { signal }),
    [id, agent],
  );
  useKeys({ f: () => read.data && onRemove(read.data), Escape: () => go({ article: null }) });
  return html`<div class="toolbar">
      <a class="button" href=${href({ article: null })}>‹ All articles</a>
      <span class="grow meta clip">${read.data?.uri}</span>
      ${read.data && html`<button class="danger" title="remove (f)" onClick=${() => onRemove(read.data)}>Remove</button>`}
    </div>
    <${Loaded} read=${read}>${(article) => html`<${Reader} article=${article} />`}<//>`;
}

function Reader({ article }) {
  const page = useRef(null);
  const outline = outlineOf(article.text);
  const jump = (index) => {
    const heading = page.current.querySelectorAll(".markdown :is(h1, h2, h3, h4, h5, h6)")[index];
    heading?.scrollIntoView({ block: "start" });
  };
  return html`<div class="notes">
    <article class="document" ref=${page} tabindex="0" aria-label=${article.title}>
      <h1>${article.title}</h1>
      <p class="meta">
        ${plural(article.text.length, "character")}, added <${Time} at=${article.created_at} />
      </p>
      <${Markdown} text=${article.text} />
    </article>
    ${
      outline.length > 1 &&
      html`<nav class="versions" aria-label="Outline">
        <h2>Outline</h2>
        <ul>
          ${outline.map(
            ({ level, text }, i) =>
              html`<li class=${`level-${level}`}>
                <button class="quiet" onClick=${() => jump(i)}>${text}</button>
              </li>`,
          )}
        </ul>
      </nav>`
    }
  </div>`;
}

// The headings of a Markdown text, without those in blocks of code.
function outlineOf(text) {
  let code = false;
  return text.split("\n").flatMap((line) => {
    if (/^ {0,3}(```|~~~)/.test(line)) code = !code;
    const heading = code ? null : /^ {0,3}(#{1,6}) +(.*?)(?: +#+)? *$/.exec(line);
    return heading ? [{ level: heading[1].length, text: heading[2].replace(/[*_`]/g, "") }] : [];
  });
}

function Add({ agent, onClose, onAdded }) {
  const [fields, setFields] = useState({ title: "", text: "", uri: "" });
  const set = (name) => (event) => setFields({ ...fields, [name]: event.target.value });
  const choose = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    const title = fields.title || file.name.replace(/\.\w+$/, "");
    setFields({ title, text: await file.text(), uri: file.name });
  };
  const add = attempt(async (event) => {
    event.preventDefault();
    const { change } = await api.post("articles", { agent, ...fields });
    const said = { added: "Added", changed: "Replaced", unchanged: "It was there already" };
    say(`${said[change] ?? "Another article has the same text"}: ${fields.title}`);
    onClose();
    onAdded();
  });
  return html`<${Dialog} title="Add an article" onClose=${onClose}
    ><form class="fields" onSubmit=${add}>
      <label>File<input type="file" accept=".md,.txt,.markdown,text/*" onChange=${choose} /></label>
      <label>Title<input required value=${fields.title} onInput=${set("title")} /></label>
      <label
        >Text, Markdown or plain<textarea
          rows="8"
          required
          value=${fields.text}
          onInput=${set("text")}
        ></textarea>
      </label>
      <label
        >Where it is from (it replaces the article from there)<input
          placeholder="handbook.md"
          value=${fields.uri}
          onInput=${set("uri")}
      /></label>
      <div class="choices"><button class="primary">Add</button></div>
    </form><//
  >`;
}

// Says what goes before it goes; undo adds it again.
function Remove({ article, agent, onClose, onChanged }) {
  const remove = attempt(async () => {
    const path = `articles/${encodeURIComponent(article.id)}`;
    const { title, text, uri } = await api.get(path, { agent });
    await api.delete(path, { agent });
    const undo = attempt(async () => {
      await api.post("articles", { agent, title, text, uri });
      onChanged();
    });
    onClose();
    go({ article: null });
    onChanged();
    say(`Removed: ${title}`, { undo });
  });
  const chars = article.chars ?? article.text.length;
  return html`<${Dialog} title="Remove this article?" onClose=${onClose}
    ><p>
      “${article.title}” with its ${number(chars)} characters, its place in the text index and its
      vectors will go. Agents can quote it no longer.
    </p>
    <div class="choices">
      <button onClick=${onClose}>Keep it</button>
      <button class="danger" autofocus onClick=${remove}>Remove</button>
    </div><//
  >`;
}

// After an addition: what is still to be done before search knows the article by its meaning.
function useProgress() {
  const [state, setState] = useState(null);
  const timer = useRef(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  const look = async (most) => {
    const { waiting } = await api.get("waiting").catch(() => ({ waiting: {} }));
    const left = (waiting.embed ?? 0) + (waiting.vectors ?? 0);
    const total = Math.max(most, left);
    setState({ left, total });
    timer.current = left
      ? setTimeout(() => look(total), 1_000)
      : setTimeout(() => setState(null), 3_000);
  };
  return [
    state,
    () => {
      clearTimeout(timer.current);
      look(1);
    },
  ];
}

const Progress = ({ left, total }) =>
  html`<div class="progress" role="status">
    <label
      >${left ? `Making vectors: ${plural(left, "job")} left` : "Ready: found by words and by meaning"}<progress
        max=${total}
        value=${total - left}
      ></progress
    ></label>
  </div>`;
