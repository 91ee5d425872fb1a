// The thread of a conversation: what was asked and answered, tool calls folded, and beside each
// message the memories made of it.

import { api } from "./api.js";
import { turnsOf } from "./conversation.js";
import { exactTime, textOf } from "./format.js";
import { Markdown } from "./markdown.js";
import { href } from "./route.js";
import { attempt, html, isOver, say, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { WindowView, receiptLine } from "./window.js";

const NEAR = 120; // pixels from an end of the thread

export function Thread({ talk, agent, me, shown, sought, empty }) {
  const box = useRef(null);
  const place = useRef({ atEnd: true, height: 0 });
  const rows = turnsOf(talk.log.entries);
  const stored = new Set(rows.map((row) => row.message.message_id));
  const isHere = stored.has(sought);
  const { done, asked_id } = talk.live ?? {};
  const live = done && stored.has(done.message_id ?? asked_id) ? null : talk.live;
  useLayoutEffect(() => {
    if (asked_id) place.current.atEnd = true; // what is sent is seen
  }, [asked_id]);
  useLayoutEffect(() => keepPlace(box.current, place.current));
  useEffect(() => {
    if (!sought || !talk.log.ready) return;
    place.current.atEnd = false;
    if (isHere) box.current.querySelector(".shown")?.scrollIntoView({ block: "center" });
    else talk.earlier(); // until it is there, or there is no more
  }, [sought, isHere, isHere ? 0 : rows.length]);
  const onScroll = async ({ target }) => {
    const rest = target.scrollHeight - target.scrollTop - target.clientHeight;
    place.current.atEnd = rest < NEAR;
    if (target.scrollTop < NEAR && !talk.log.done) await talk.earlier();
  };
  const last = rows.findLast((row) => row.type === "user" || row.type === "assistant");
  const isOpen = !live && me.model && last?.type === "user";
  return html`<div
    class="thread"
    role="log"
    aria-label="Conversation"
    aria-busy=${talk.busy}
    tabindex="0"
    ref=${box}
    onScroll=${onScroll}
  >
    ${!rows.length && !live && talk.log.ready && empty}
    ${rows.map(
      (row) =>
        html`<${Row}
          key=${row.call?.call_id ?? row.message.message_id}
          row=${row}
          talk=${talk}
          agent=${agent}
          shown=${shown === row.message.message_id}
        />`,
    )}
    ${live && html`<${Live} live=${live} talk=${talk} agent=${agent} isStored=${stored.has(asked_id)} />`}
    ${
      isOpen &&
      html`<${Turn} label=${agent}>
        <p class="meta">
          Not answered.
          <button onClick=${() => talk.askAgain({ asked_id: last.message.message_id })}>
            Ask again
          </button>
        </p>
      <//>`
    }
  </div>`;
}

// At the end, the thread stays at its end; elsewhere, what is read stays where it is when earlier
// messages come in above it.
function keepPlace(box, place) {
  if (place.atEnd) box.scrollTop = box.scrollHeight;
  else if (box.scrollTop < NEAR && place.height) box.scrollTop += box.scrollHeight - place.height;
  place.height = box.scrollHeight;
}

const Turn = ({ label, at, mine, shown, children, beside, below }) =>
  html`<article class=${`turn ${mine ? "mine" : ""} ${shown ? "shown" : ""}`} aria-label=${label}>
    <header class="meta">
      <b>${label}</b>
      ${at && html`<time datetime=${at} title=${exactTime(at)}>${clock(at)}</time>`}
    </header>
    <div class="body">${children}</div>
    ${beside && html`<div class="beside">${beside}</div>`} ${below}
  </article>`;

const clock = (at) =>
  new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

function Row({ row: { type, message, call, result }, talk, agent, shown }) {
  const id = message.message_id;
  const at = message.created_at;
  const turn = talk.receipts.get(id);
  const made = talk.made.get(id);
  const beside = made && html`<${Made} memories=${made} update=${talk.update} />`;
  if (type === "call")
    return html`<${Tool} name=${call.name} arguments=${call.arguments} result=${result} />`;
  if (type === "tool")
    return html`<${Tool} name=${message.name ?? "tool"} result=${message.content} />`;
  const part = { at, shown, beside };
  if (type === "user")
    return html`<${Turn}
      label="You"
      mine
      ...${part}
      below=${turn?.receipt && html`<${Seen} turn=${turn} question=${textOf(message)} />`}
    >
      <div class="text">${textOf(message)}</div>
    <//>`;
  return html`<${Turn}
    label=${type === "assistant" ? agent : type}
    ...${part}
    below=${turn?.receipt && html`<${Seen} turn=${turn} />`}
  >
    <${Markdown} text=${textOf(message)} />
    ${message.unfinished && html`<p class="meta">Still being written, or broken off.</p>`}
  <//>`;
}

// The turn that is being answered, or could not be.
function Live({ live, talk, agent, isStored }) {
  const { message, answer, tools, seen, error } = live;
  return html`
    ${
      !isStored && message && html`<${Turn} label="You" mine><div class="text">${message}</div><//>`
    }
    ${tools.map(
      (tool) =>
        html`<${Tool}
          name=${tool.name}
          arguments=${JSON.stringify(tool.arguments)}
          result=${tool.result}
          failed=${tool.success === false}
        />`,
    )}
    <${Turn} label=${agent}>
      ${answer && html`<div class="text">${answer}</div>`}
      ${!answer && !error && html`<p class="meta">${seen.hits ? "Thinking…" : "Recalling…"}</p>`}
      ${
        error &&
        html`<div class="problem" role="alert">
          <p>${error.message}</p>
          <button onClick=${() => talk.askAgain(live)}>Ask again</button>
        </div>`
      }
      ${seen.receipt && html`<${Seen} turn=${seen} />`}
    <//>
  `;
}

// One line that opens what the model saw, or would have seen.
function Seen({ turn, question }) {
  const [open, setOpen] = useState(Boolean(turn.messages));
  const box = useRef(null);
  // What opens by itself is long: it is read from its beginning.
  useEffect(() => {
    if (open) box.current.closest(".turn").scrollIntoView();
  }, []);
  const address = question
    ? href({ view: "context", question, session: turn.session_id })
    : turn.id && href({ view: "context", receipt: turn.id });
  return html`<details
    class="saw"
    ref=${box}
    open=${open}
    onToggle=${(event) => setOpen(event.target.open)}
  >
    <summary>
      ${question && "No answer: a model would be sent "}${receiptLine(turn.receipt)}
    </summary>
    ${
      open &&
      html`<${WindowView}
          receipt=${turn.receipt}
          messages=${turn.messages}
          hits=${turn.hits}
          recalled=${turn.recalled}
        />
        ${address && html`<a href=${address}>Open in the context viewer</a>`}`
    }
  </details>`;
}

function Tool({ name, arguments: given, result, failed }) {
  const state = result === undefined ? "running…" : failed ? "failed" : "";
  return html`<details class="tool">
    <summary><span class="mono">${name}</span> <span class="meta">${state}</span></summary>
    ${given && html`<pre class="text">${pretty(given)}</pre>`}
    ${result !== undefined && html`<pre class="text">${pretty(textOf({ content: result }))}</pre>`}
  </details>`;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// The memories made of a message; what was made just now can be undone here.
function Made({ memories, update }) {
  const undo = attempt(async (memory) => {
    const path = `memories/${encodeURIComponent(memory.id)}/undo`;
    await api.post(path);
    await update(memory.id);
    say("Undone", {
      undo: attempt(async () => {
        await api.post(path);
        await update(memory.id);
      }),
    });
  });
  return html`<ul class="made" aria-label="Remembered of this message">
    ${memories.map(
      (memory) =>
        html`<li class=${isOver(memory) ? "over" : ""}>
          <a class=${`kind kind-${memory.kind}`} href=${href({ show: `memory:${memory.id}` })}
            ><i aria-hidden="true"></i><span>${memory.text}</span></a
          >
          ${isOver(memory) && html`<span class="meta">${memory.reason || "over"}</span>`}
          ${
            memory.fresh &&
            !isOver(memory) &&
            html`<button class="quiet" onClick=${() => undo(memory)}>Undo</button>`
          }
        </li>`,
    )}
  </ul>`;
}
