// Evidence: a message inside its conversation, and the chain of updates that an item belongs to.

import { api } from "./api.js";
import { day, month, textOf } from "./format.js";
import { href } from "./route.js";
import {
  Loaded,
  Marked,
  Problem,
  Time,
  attempt,
  html,
  isOver,
  say,
  useRead,
  useState,
} from "./ui.js";

const BESIDE = 2; // messages before and after
const LONG = 1_200; // characters that are shown at first

// A message with those before and after it; `quote` is marked in it.
export function Conversation({ messageId, quote = "" }) {
  const read = useRead((signal) => around(messageId, signal), [messageId]);
  if (read.error?.status === 404)
    return html`<p class="meta">The message was forgotten, or is not yours to see.</p>`;
  return html`<${Loaded} read=${read} rows=${3}
    >${({ source, entries }) => html`
      <figure class="conversation">
        <ol>
          ${entries.map(
            (entry) =>
              html`<${Line}
                key=${entry.seq}
                entry=${entry}
                marked=${entry.seq === source.seq}
                quote=${quote}
              />`,
          )}
        </ol>
        <figcaption>
          <a
            href=${href({ view: "chat", session: source.session_id, message: source.message.message_id })}
            >Open the conversation</a
          >
        </figcaption>
      </figure>
    `}<//
  >`;
}

async function around(id, signal) {
  const source = await api.get(`messages/${encodeURIComponent(id)}`, {}, { signal });
  const part = { session: source.session_id, limit: BESIDE };
  const [before, after] = await Promise.all([
    api.get("messages", { ...part, before: source.seq }, { signal }),
    api.get("messages", { ...part, after: source.seq, oldest_first: true }, { signal }),
  ]);
  return { source, entries: [...before.items, source, ...after.items] };
}

function Line({ entry, marked, quote }) {
  const [all, setAll] = useState(false);
  const { message } = entry;
  const text = textOf(message);
  const shown = all ? text : text.slice(0, LONG);
  return html`<li class=${marked ? "source" : ""} aria-current=${marked ? "true" : undefined}>
    <span class="meta">${message.name ?? message.role} · <${Time} at=${message.created_at} /></span>
    <p class="text">
      ${marked && quote ? html`<${Marked} text=${shown} words=${[quote]} />` : shown}
      ${
        text.length > shown.length &&
        html`… <button class="quiet" onClick=${() => setAll(true)}>Show all</button>`
      }
    </p>
  </li>`;
}

// Update chains

// In months, or in days where it began and ended, or is still, within one, and of this month.
const period = (item) => {
  const start = item.valid_from ?? item.created_at ?? item.known_from;
  const end = isOver(item) ? endOf(item) : null;
  const recent = month(end ?? start) === month(Date.now());
  const name = recent || (end && month(start) === month(end)) ? day : month;
  if (end && Date.parse(end) < Date.parse(start)) return `planned for ${day(start)}`;
  return end ? `${name(start)} until ${name(end)}` : `since ${name(start)}`;
};
const endOf = (item) => item.valid_to ?? item.known_to ?? item.ended_at;
const nameOf = (item) => item.object ?? item.text;

// What was updated by what, oldest first, as a small timeline; nothing where nothing was.
export function UpdateChain({ kind, item, round }) {
  const path = kind === "fact" ? "facts" : "memories";
  const read = useRead(
    (signal) => api.get(`${path}/${encodeURIComponent(item.id)}/history`, {}, { signal }),
    [item.id, item.superseded_by, round],
  );
  if (read.error) return html`<${Problem} error=${read.error} retry=${read.reload} />`;
  const items = read.data?.items ?? [];
  if (items.length < 2) return null;
  const undo = attempt(async (newer) => {
    await api.post(`${path}/${encodeURIComponent(newer.id)}/undo`);
    say("The update is undone.");
    read.reload();
  });
  return html`<section aria-label="Updates">
    <h3>Updates</h3>
    ${kind === "fact" && html`<p class="meta">${item.subject} ${item.predicate}</p>`}
    <ol class="chain">
      ${items.map((one, i) => {
        const next = items[i + 1];
        return html`<li key=${one.id} class=${isOver(one) ? "over" : "holds"}>
          <a
            href=${href({ show: `${kind}:${one.id}` })}
            aria-current=${one.id === item.id ? "true" : undefined}
            >${nameOf(one)}</a
          >
          <span class="meta">${period(one)}</span>
          ${
            next &&
            html`<p class="link meta">
              ${one.reason || "superseded"}
              <button
                class="quiet"
                disabled=${i + 2 < items.length}
                title=${i + 2 < items.length ? "Undo what came after it first" : ""}
                aria-label=${`Undo the update to ${nameOf(next)}`}
                onClick=${() => undo(next)}
              >
                Undo
              </button>
            </p>`
          }
        </li>`;
      })}
    </ol>
  </section>`;
}
