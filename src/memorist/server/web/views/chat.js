// Chat: a conversation with an agent, and those before it.

import { api } from "../api.js";
import { keepAgent, resolveSession, useConversation, whereToTalk } from "../conversation.js";
import { counted } from "../edit.js";
import { count, number } from "../format.js";
import { useKeys } from "../keys.js";
import { go, href } from "../route.js";
import { Thread } from "../thread.js";
import {
  Copyable,
  Dialog,
  Loaded,
  Problem,
  Time,
  attempt,
  html,
  say,
  useChanges,
  useEffect,
  usePages,
  useRead,
  useRef,
  useState,
} from "../ui.js";

const COMMAND = "MEMORIST_MODEL=openai:gpt-5-mini MEMORIST_MODEL_KEY=… memorist serve";
const drafts = new Map(); // what was typed and not sent, by conversation

export default function Chat({ route, me }) {
  const user = route.query.user ?? me.user;
  const { agent, session } = route.query;
  const read = useRead(
    (signal) => whereToTalk({ user, agent, session }, { signal }),
    [user, agent, session],
  );
  useEffect(() => {
    // The address names no conversation but the one that is shown.
    if (read.data && session && session !== read.data.session)
      go({ session: null }, { replace: true });
  }, [read.data]);
  return html`<${Loaded} read=${read}
    >${(talk) => html`<${Room} key=${talk.session} ...${talk} user=${user} route=${route} me=${me} onGone=${read.reload} />`}<//
  >`;
}

function Room({ agent, session, user, route, me, onGone }) {
  const [listed, setListed] = useState(false);
  const [dialog, setDialog] = useState(null);
  const [first] = useState(shownIn(route.query)); // one that is picked later stays where it is
  const input = useRef(null);
  const talk = useConversation(session, agent);
  const here = useSummary(session);
  const begin = attempt(async () => {
    const found = await resolveSession({ user, agent, begin: true });
    go({ session: found.session_id, show: null });
  });
  useKeys({
    n: begin,
    e: () => setDialog("rename"),
    f: () => setDialog("delete"),
    Enter: () => input.current.focus(),
    j: () => step(1),
    k: () => step(-1),
  });
  const name = agent || "the agent";
  return html`<div class=${`chat ${listed ? "listed" : ""}`}>
    <${Sessions}
      user=${user}
      agent=${agent}
      session=${session}
      every=${!route.query.agent}
      onNew=${begin}
      onPick=${() => setListed(false)}
    />
    <section class="talk" aria-label=${here.title}>
      <header>
        <button
          class="quiet only-narrow"
          aria-expanded=${listed}
          onClick=${() => setListed(!listed)}
        >
          Conversations
        </button>
        <h1 class="clip">${here.title}</h1>
        <span class="grow"></span>
        <a href=${href({ view: "context", agent: agent || null, session })}>Context</a>
        <button class="quiet" onClick=${() => setDialog("rename")}>Rename</button>
        <button class="quiet" onClick=${() => setDialog("delete")}>Delete</button>
      </header>
      ${
        talk.log.error && !talk.live
          ? html`<${Problem} error=${talk.log.error} retry=${talk.log.reload} />`
          : html`<${Thread}
              talk=${talk}
              agent=${name}
              me=${me}
              shown=${shownIn(route.query)}
              sought=${route.query.message ?? first}
              empty=${html`<${Beginning} agent=${name} />`}
            />`
      }
      ${!me.model && html`<${NoModel} />`}
      <${Composer} talk=${talk} session=${session} agent=${name} input=${input} />
    </section>
    ${dialog === "rename" && html`<${Rename} session=${session} here=${here} onClose=${() => setDialog(null)} />`}
    ${dialog === "delete" && html`<${Delete} session=${session} here=${here} onGone=${onGone} onClose=${() => setDialog(null)} />`}
  </div>`;
}

// The message that the address names, in its conversation or in the inspector.
const shownIn = ({ message, show = "" }) =>
  message ?? (show.startsWith("message:") ? show.slice("message:".length) : null);

// j and k move through the list of conversations; Enter opens the one that has the focus.
function step(by) {
  const links = [...document.querySelectorAll(".sessions li a")];
  const at = links.indexOf(document.activeElement);
  const current = links.findIndex((link) => link.ariaCurrent);
  links[Math.max(0, Math.min(links.length - 1, (at < 0 ? current : at) + by))]?.focus();
}

const titled = (summary) => summary?.title || "New conversation";

// The title of a conversation and how much there is in it, as messages come.
function useSummary(session) {
  const read = useRead(
    (signal) => api.get("sessions", { session, summary: true }, { signal }),
    [session],
  );
  useChanges(({ event, data }) => {
    if (event === "message" && data.session === session) read.reload();
  });
  const summary = read.data?.items[0];
  return { ...summary, title: titled(summary), own: summary?.title ?? "", reload: read.reload };
}

function Sessions({ user, agent, session, every, onNew, onPick }) {
  const query = { agent: every ? null : agent, newest_first: true, summary: true };
  const pages = usePages("sessions", query);
  const timer = useRef();
  useChanges(({ event }) => {
    if (event !== "message") return;
    clearTimeout(timer.current);
    timer.current = setTimeout(pages.reload, 300);
  });
  useEffect(() => {
    addEventListener("memorist-sessions", pages.reload);
    return () => removeEventListener("memorist-sessions", pages.reload);
  }, []);
  const onScroll = ({ target }) =>
    target.scrollHeight - target.scrollTop - target.clientHeight < 200 && pages.more();
  return html`<nav class="sessions" aria-label="Conversations">
    <div class="sessions-head">
      <${Agents} user=${user} agent=${agent} />
      <button onClick=${onNew} title="New conversation (n)">New</button>
    </div>
    <ul onScroll=${onScroll}>
      ${pages.items.map(
        (it) =>
          html`<li key=${it.scope.session}>
            <a
              href=${href({ view: "chat", agent: it.scope.agent || null, session: it.scope.session, show: null })}
              aria-current=${it.scope.session === session ? "true" : undefined}
              onClick=${onPick}
            >
              <span class="clip">${titled(it)}</span>
              <span class="meta">
                <${Time} at=${it.last_active_at} />
                ${it.messages && html`<span>${count(it.messages)} ${it.messages.count === 1 ? "message" : "messages"}</span>`}
                ${every && it.scope.agent && html`<span>${it.scope.agent}</span>`}
              </span>
            </a>
          </li>`,
      )}
    </ul>
    ${pages.error && html`<${Problem} error=${pages.error} retry=${pages.reload} />`}
  </nav>`;
}

// Whom to talk to; each agent has conversations of its own.
function Agents({ user, agent }) {
  const [asking, setAsking] = useState(false);
  const read = useRead((signal) => api.get("agents", {}, { signal }), []);
  const names = [...new Set([agent, ...(read.data?.items ?? [])])].sort();
  const choose = (name) => {
    keepAgent(user, name);
    go({ view: "chat", agent: name, session: null, show: null });
  };
  const pick = ({ target }) => (target.value === "+" ? setAsking(true) : choose(target.value));
  const submit = (event) => {
    event.preventDefault();
    choose(new FormData(event.target).get("name").trim());
  };
  return html`<select aria-label="Talk to" class="grow" value=${agent} onChange=${pick}>
      ${names.map((name) => html`<option value=${name}>${name || "unnamed agent"}</option>`)}
      <option value="+">another agent…</option>
    </select>
    ${
      asking &&
      html`<${Dialog} title="Another agent" onClose=${() => setAsking(false)}>
        <form onSubmit=${submit}>
          <label>Name <input name="name" required maxlength="200" autofocus /></label>
          <button class="primary">Talk</button>
        </form>
      <//>`
    }`;
}

const Beginning = ({ agent }) =>
  html`<div class="empty">
    <p>
      Say something to ${agent}. What is worth remembering is shown beside the message.
    </p>
  </div>`;

const NoModel = () =>
  html`<aside class="no-model" aria-label="No model">
    <p>
      No model is set: instead of an answer you see what a model would be sent. To get answers,
      start the server with a model:
    </p>
    <${Copyable} text=${COMMAND} />
  </aside>`;

function Composer({ talk, session, agent, input }) {
  const [text, setText] = useState(drafts.get(session) ?? "");
  const [waiting, setWaiting] = useState(false);
  const write = (value) => {
    setText(value);
    setWaiting(false);
    drafts.set(session, value);
  };
  const send = (event) => {
    event?.preventDefault();
    setWaiting(talk.busy);
    if (!text.trim() || talk.busy) return;
    write("");
    talk.send(text.trim());
  };
  // What is sent while an answer comes follows it.
  useEffect(() => {
    if (waiting && !talk.busy) send();
  }, [talk.busy]);
  const onKeyDown = (event) => {
    if (event.key === "Escape") event.target.blur();
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  };
  return html`<form class="composer" onSubmit=${send} aria-label="Send a message">
    <textarea
      ref=${input}
      rows="1"
      aria-label="Message"
      placeholder=${`Message ${agent}`}
      value=${text}
      onInput=${(event) => write(event.target.value)}
      onKeyDown=${onKeyDown}
    ></textarea>
    ${
      talk.busy
        ? html`<button type="button" onClick=${talk.stop}>Stop</button>`
        : html`<button class="primary" disabled=${!text.trim()}>Send</button>`
    }
  </form>`;
}

const listChanged = () => dispatchEvent(new Event("memorist-sessions"));

function Rename({ session, here, onClose }) {
  const submit = attempt(async (event) => {
    event.preventDefault();
    const title = new FormData(event.target).get("title").trim();
    await api.patch(`sessions/${encodeURIComponent(session)}`, { title: title || null });
    here.reload();
    listChanged();
    onClose();
  });
  return html`<${Dialog} title="Rename the conversation" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <label class="grow"
        >Title <input class="grow" name="title" maxlength="200" value=${here.own} autofocus
      /></label>
      <button class="primary">Rename</button>
    </form>
  <//>`;
}

// Deletes for good, after a preview of what goes.
function Delete({ session, here, onClose, onGone }) {
  const path = `sessions/${encodeURIComponent(session)}`;
  const read = useRead(() => api.delete(path, { dry_run: true }), [session]);
  const remove = attempt(async () => {
    await api.delete(path);
    onClose();
    listChanged();
    say("Deleted");
    go({ session: null, show: null });
    onGone();
  });
  return html`<${Dialog} title="Delete the conversation" onClose=${onClose}>
    <p>“${here.title}” goes for good, with what was made of it:</p>
    <${Loaded} read=${read} rows=${2}
      >${({ counts }) => html`
        <ul class="going" aria-label="What will go">
          ${counted(counts).map(([it, noun]) => html`<li><strong>${number(it)}</strong> ${noun}</li>`)}
        </ul>
        <div class="actions">
          <button class="danger" onClick=${remove}>Delete for good</button>
          <button onClick=${onClose}>Cancel</button>
        </div>
      `}<//
    >
  <//>`;
}
