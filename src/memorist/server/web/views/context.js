// The context viewer: what a model would get for a question, section by section, or what it got.

import { api } from "../api.js";
import { anthropic, openai } from "../copies.js";
import { number } from "../format.js";
import { go, href } from "../route.js";
import { Empty, Loaded, Time, html, say, useRead, useState } from "../ui.js";
import { WindowView, receiptLine } from "../window.js";

const SIZES = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 128_000];

export default function Context({ route, me }) {
  const { question, receipt } = route.query;
  return html`<div class="page context">
    <${Ask} key=${question} query=${route.query} />
    ${
      receipt
        ? html`<${Past} id=${receipt} />`
        : question
          ? html`<${Made} query=${route.query} me=${me} />`
          : html`<${Empty} command='memorist context "Plan my weekend"'
              >Ask something, to see what a model would get with it.<//
            >`
    }
  </div>`;
}

function Ask({ query }) {
  const [text, setText] = useState(query.question ?? "");
  const submit = (event) => {
    event?.preventDefault();
    if (text.trim()) go({ question: text.trim(), receipt: null });
  };
  const pick = (name) => (event) => go({ [name]: event.target.value, receipt: null });
  const size = Number(query.max_tokens ?? 8_000);
  return html`<form class="context-ask" onSubmit=${submit} aria-label="Make a context">
    <div class="context-line">
      <input
        class="grow"
        aria-label="Question"
        placeholder="What would the model see, if you asked…"
        value=${text}
        onInput=${(event) => setText(event.target.value)}
      />
      <button class="primary">Show</button>
    </div>
    <div class="options">
      <label
        >Window
        <select value=${size} onChange=${pick("max_tokens")}>
          ${[...new Set([...SIZES, size])]
            .sort((a, b) => a - b)
            .map((it) => html`<option value=${it}>${number(it)} tokens</option>`)}
        </select></label
      >
      <label
        ><input
          type="checkbox"
          checked=${query.library === "true"}
          onChange=${(event) => go({ library: event.target.checked || null, receipt: null })}
        />quote articles</label
      >
      <label
        ><input
          type="checkbox"
          checked=${query.wait === "true"}
          onChange=${(event) => go({ wait: event.target.checked || null, receipt: null })}
        />without a deadline</label
      >
      <${Sessions} query=${query} onPick=${pick("session")} />
    </div>
    <details open=${Boolean(query.system)}>
      <summary>System prompt</summary>
      <textarea
        rows="3"
        aria-label="System prompt"
        placeholder="You are a kind tutor. {long_term_memory_notes} is where the notes stand."
        onChange=${pick("system")}
        value=${query.system ?? ""}
      ></textarea>
    </details>
  </form>`;
}

// Whose turns the context holds: one conversation's, or none.
function Sessions({ query, onPick }) {
  const read = useRead(
    (signal) =>
      api.get(
        "sessions",
        { agent: query.agent, newest_first: true, summary: true, limit: 50 },
        { signal },
      ),
    [query.agent],
  );
  const sessions = read.data?.items ?? [];
  const known = sessions.some((it) => it.scope.session === query.session);
  return html`<label
    >Conversation
    <select value=${query.session ?? ""} onChange=${onPick}>
      <option value="">none</option>
      ${query.session && !known && html`<option value=${query.session}>this one</option>`}
      ${sessions.map((it) => html`<option value=${it.scope.session}>${it.title || "New conversation"}</option>`)}
    </select></label
  >`;
}

// The context as it would be now, and what was recalled for it.
function Made({ query, me }) {
  const { question, agent, session, system } = query;
  const deadline = query.wait === "true" ? null : 50;
  const size = Number(query.max_tokens ?? 8_000);
  const key = JSON.stringify(query, ["question", "agent", "session", "system", "library", "wait"]);
  const read = useRead(
    async (signal) => {
      const body = { question, agent, session, system, max_tokens: size, deadline_ms: deadline };
      const context = await api.post(
        "context",
        { ...body, library: query.library === "true" },
        { signal },
      );
      const recall = await api.post(
        "recall",
        { question, agent, limit: 100, min_score: me.window_min_score, deadline_ms: deadline },
        { signal },
      );
      return { context, hits: recall.hits };
    },
    [key, size],
  );
  return html`<${Loaded} read=${read}
    >${({ context, hits }) => html`
      <div class="copies">
        <p class="grow meta">${receiptLine(context.receipt)}</p>
        <${Copy} label="Copy as OpenAI JSON" value=${() => openai(context)} />
        <${Copy} label="Copy as Anthropic JSON" value=${() => anthropic(context)} />
        <a href=${href({ view: "recall", question })}>Recall</a>
      </div>
      <${WindowView} receipt=${context.receipt} messages=${context.messages} hits=${hits} />
    `}<//
  >`;
}

function Copy({ label, value }) {
  const copy = async () => {
    await navigator.clipboard.writeText(JSON.stringify(value(), null, 2));
    say("Copied");
  };
  return html`<button onClick=${copy}>${label}</button>`;
}

// What a model got in a past turn: its receipt; texts are not kept a second time.
function Past({ id }) {
  const read = useRead(
    (signal) => api.get(`receipts/${encodeURIComponent(id)}`, {}, { signal }),
    [id],
  );
  return html`<${Loaded} read=${read}
    >${(turn) => html`
      <p class="meta">
        What the model got, <${Time} at=${turn.created_at} />: ${receiptLine(turn.receipt)}.
        <a
          href=${href({ view: "chat", session: turn.session_id, show: `message:${turn.asked_id}` })}
          >The turn in its conversation</a
        >
      </p>
      <${WindowView} receipt=${turn.receipt} recalled=${turn.recalled} />
    `}<//
  >`;
}
