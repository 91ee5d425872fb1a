// The inspector: the evidence of what is selected, `show` being "memory:ID", "fact:ID" or
// "message:ID". It opens beside every view.

import { api } from "./api.js";
import { EditForm, ForgetDialog } from "./edit.js";
import { Conversation, UpdateChain } from "./evidence.js";
import { day, number, textOf } from "./format.js";
import { useKeys } from "./keys.js";
import { go, href, readRoute } from "./route.js";
import {
  Copyable,
  Kind,
  Loaded,
  State,
  Time,
  attempt,
  html,
  isOver,
  say,
  useChanges,
  useEffect,
  useRead,
  useRef,
  useState,
} from "./ui.js";

const PARTS = { memory: MemoryPart, fact: FactPart, message: MessagePart };
const PATHS = { memory: "memories", fact: "facts", message: "messages" };
const SOURCES_SHOWN = 3;
const TRUST = {
  system: "set by the operator",
  user: "said by the user",
  assistant: "said by the agent",
  tool: "from a tool",
  import: "imported",
  web: "from the web",
};

// What the next item to be shown begins with: `e` and `f` in a list open it with that.
let beginning = null;
export function inspect(kind, id, action = null) {
  beginning = action;
  const show = `${kind}:${id}`;
  if (readRoute().query.show === show) dispatchEvent(new Event("memorist-begin"));
  else go({ show });
}

export function Inspector({ show }) {
  const [kind, id] = [show.slice(0, show.indexOf(":")), show.slice(show.indexOf(":") + 1)];
  const box = useRef(null);
  // Where it slides over the view it takes the focus, and gives it back.
  useEffect(() => {
    if (!matchMedia("(max-width: 1279px)").matches) return undefined;
    const before = document.activeElement;
    box.current.focus();
    return () => before?.focus?.();
  }, []);
  const Part = PARTS[kind];
  return html`<aside class="inspector" aria-label="Inspector" tabindex="-1" ref=${box}>
    <header>
      <h2>${kind}</h2>
      <button class="quiet" aria-label="Close the inspector" onClick=${() => go({ show: null })}>
        ✕
      </button>
    </header>
    ${Part ? html`<${Part} kind=${kind} id=${id} />` : html`<p>There is nothing of this kind.</p>`}
  </aside>`;
}

// An item by its id, read again when it changes.
function useItem(kind, id) {
  const read = useRead(
    (signal) => api.get(`${PATHS[kind]}/${encodeURIComponent(id)}`, {}, { signal }),
    [id],
  );
  const [round, setRound] = useState(0);
  useChanges(({ event, data }) => {
    if (event !== kind || data.id !== id) return;
    read.reload();
    setRound((n) => n + 1);
  });
  return { ...read, round };
}

// The item's part of the inspector: statement, details, actions, updates, evidence.
function Item({ kind, id, children }) {
  const read = useItem(kind, id);
  if (read.error?.status === 404)
    return html`<div class="empty"><p>It was forgotten, or is not yours to see.</p></div>`;
  return html`<${Loaded} read=${read} rows=${5}
    >${(item) => html`
      ${children(item)}
      <${Actions} kind=${kind} item=${item} reload=${read.reload} />
      <${UpdateChain} kind=${kind} item=${item} round=${read.round} />
      <${Evidence} item=${item} />
      <${Foot} kind=${kind} id=${id} />
    `}<//
  >`;
}

const Row = ({ name, children }) =>
  children
    ? html`<dt>${name}</dt>
        <dd>${children}</dd>`
    : null;
const facet = (name, value) =>
  html`<a href=${href({ view: "memories", show: null, [name]: value })}>${value}</a>`;

function MemoryPart({ kind, id }) {
  return html`<${Item} kind=${kind} id=${id}
    >${(memory) => html`
      <p class="statement">${memory.text}</p>
      <p class="meta badges"><${Kind} kind=${memory.kind} /> <${State} item=${memory} /></p>
      <dl class="details">
        <${Row} name="Trust">${TRUST[memory.source] ?? memory.source}<//>
        <${Row} name="Said"><${Time} at=${memory.created_at} /><//>
        <${Row} name="Ended"
          >${
            isOver(memory) &&
            html`<${Time} at=${memory.ended_at} /> ${memory.reason && ` (${memory.reason})`}`
          }<//
        >
        <${Row} name="Expires">${memory.expires_at && day(memory.expires_at)}<//>
        <${Row} name="Importance">
          <meter min="0" max="1" value=${memory.importance} aria-label="Importance"></meter>${" "}
          ${memory.importance.toFixed(2)}
        <//>
        <${Row} name="Tier"
          >${memory.tier}-term${memory.uses > 0 && `, used ${number(memory.uses)} ×`}<//
        >
        <${Row} name="Category">${facet("category", memory.category)}<//>
        <${Row} name="Tags"
          >${
            memory.tags.length > 0 &&
            memory.tags.map((tag, i) => [i > 0 && ", ", facet("tag", tag)])
          }<//
        >
      </dl>
    `}<//
  >`;
}

const span = (start, end) => `${start ? day(start) : "always"} – ${end ? day(end) : "now"}`;

function FactPart({ kind, id }) {
  const named = (name, value) =>
    html`<a href=${href({ view: "memories", what: "facts", show: null, [name]: value })}
      >${value}</a
    >`;
  return html`<${Item} kind=${kind} id=${id}
    >${(fact) => html`
      <p class="statement">
        ${named("subject", fact.subject)} <em>${fact.predicate}</em> ${named("object", fact.object)}
      </p>
      <p class="meta badges"><${Kind} kind="fact" /> <${State} item=${fact} /></p>
      <dl class="details">
        <${Row} name="Trust">${TRUST[fact.source] ?? fact.source}<//>
        <${Row} name="Said"><${Time} at=${fact.said_at ?? fact.known_from} /><//>
        <${Row} name="True">${span(fact.valid_from, fact.valid_to)}<//>
        <${Row} name="Known">${span(fact.known_from, fact.known_to)}<//>
        <${Row} name="Ended">${isOver(fact) && fact.reason}<//>
        <${Row} name="Confidence">${fact.confidence < 1 && fact.confidence.toFixed(2)}<//>
        <${Row} name="Stated by"
          >${
            fact.memory && html`<a href=${href({ show: `memory:${fact.memory}` })}>a memory</a>`
          }<//
        >
        <${Row} name="Graph"
          ><a href=${href({ view: "graph", entity: fact.subject, show: `fact:${fact.id}` })}
            >around ${fact.subject}</a
          ><//
        >
      </dl>
    `}<//
  >`;
}

function MessagePart({ id }) {
  const read = useItem("message", id);
  const revisions = useRead(
    (signal) => api.get(`messages/${encodeURIComponent(id)}/revisions`, {}, { signal }),
    [id, read.round],
  );
  const [forgetting, setForgetting] = useState(false);
  useKeys({ f: () => setForgetting(true) });
  if (read.error?.status === 404)
    return html`<div class="empty"><p>It was forgotten, or is not yours to see.</p></div>`;
  return html`<${Loaded} read=${read} rows=${5}
    >${({ message, source }) => html`
      <dl class="details">
        <${Row} name="Said by">${message.name ?? message.role}<//>
        <${Row} name="When"><${Time} at=${message.created_at} /><//>
        <${Row} name="Trust">${TRUST[source] ?? source}<//>
      </dl>
      <div class="actions">
        <button onClick=${() => setForgetting(true)}>Forget <kbd>f</kbd></button>
      </div>
      <section aria-label="Conversation">
        <h3>In its conversation</h3>
        <${Conversation} messageId=${id} />
      </section>
      ${
        revisions.data?.items.length > 0 &&
        html`<section aria-label="Revisions">
          <h3>What it said before</h3>
          ${revisions.data.items.map((old) => html`<p class="quote text">${textOf(old)}</p>`)}
        </section>`
      }
      <${Foot} kind="message" id=${id} />
      ${
        forgetting &&
        html`<${ForgetDialog} kind="message" id=${id} onClose=${() => setForgetting(false)} />`
      }
    `}<//
  >`;
}

// Edit, forget, undo: buttons, and the keys e, f and u.
function Actions({ kind, item, reload }) {
  const [doing, setDoing] = useState(() => beginning);
  useEffect(() => {
    const begin = () => {
      setDoing(beginning);
      beginning = null;
    };
    beginning = null;
    addEventListener("memorist-begin", begin);
    return () => removeEventListener("memorist-begin", begin);
  }, []);
  const over = isOver(item);
  const restore = attempt(async () => {
    await api.post(`${PATHS[kind]}/${encodeURIComponent(item.id)}/undo`);
    say("It holds again.");
    reload();
  });
  const close = () => setDoing(null);
  useKeys({
    ...(over ? { u: restore } : { e: () => setDoing("edit") }),
    f: () => setDoing("forget"),
  });
  if (doing === "edit" && !over)
    return html`<${EditForm} kind=${kind} item=${item} onClose=${close} />`;
  return html`<div class="actions">
    ${!over && html`<button onClick=${() => setDoing("edit")}>Edit <kbd>e</kbd></button>`}
    <button onClick=${() => setDoing("forget")}>Forget <kbd>f</kbd></button>
    ${over && html`<button onClick=${restore}>Restore <kbd>u</kbd></button>`}
    ${doing === "forget" && html`<${ForgetDialog} kind=${kind} id=${item.id} onClose=${close} />`}
  </div>`;
}

// The messages that an item came from, each inside its conversation.
function Evidence({ item }) {
  const [all, setAll] = useState(false);
  const quote = item.text?.replace(/ \[[^\]]*\]$/, "") ?? item.object;
  const sources = all ? item.sources : item.sources.slice(-SOURCES_SHOWN);
  if (!sources.length) return html`<p class="meta">No message says so: it was added as it is.</p>`;
  return html`<section aria-label="Evidence">
    <h3>${item.sources.length === 1 ? "The message it came from" : "The messages it came from"}</h3>
    ${sources.map((id) => html`<${Conversation} key=${id} messageId=${id} quote=${quote} />`)}
    ${
      sources.length < item.sources.length &&
      html`<button onClick=${() => setAll(true)}>
        ${number(item.sources.length - sources.length)} earlier
      </button>`
    }
  </section>`;
}

const Foot = ({ kind, id }) => html`
  <footer class="foot">
    <a href=${href({ view: "recall", expect: `${kind}:${id}` })}>Why is it recalled, or not?</a>
    <${Copyable} text=${id} />
  </footer>
`;
