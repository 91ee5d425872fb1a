// What a model sees: its window as a bar in sections, their texts, what was recalled, what was cut.

import { api } from "./api.js";
import { number, percent, plural, textOf } from "./format.js";
import { href } from "./route.js";
import { ScoreBar, rankingScore } from "./signals.js";
import { Bar, Kind, Loaded, Time, html, useRead, useRef, useState } from "./ui.js";

// The sections by their names in a receipt: what they are called, and their colours' numbers.
const SECTIONS = {
  system: ["System prompt", 7],
  tools: ["Tools", 5],
  notes: ["Notes", 4],
  summary: ["Summary", 6],
  history: ["Conversation", 2],
  memories: ["Memories", 1],
  articles: ["Articles", 3],
  question: ["Question", 8],
};
const titleOf = (name) => SECTIONS[name]?.[0] ?? name;

export const part = (receipt, name) =>
  receipt.parts.find((it) => it.name === name) ?? { name, tokens: 0, ids: [], cut: 0, why: "" };

// The texts of a window in order: [{section, role, text}]. Sections that share a message begin with
// the lines that the receipt names. Text of others is quoted, each line with a mark before it, so
// none of it can be mistaken for one of these.
export function piecesOf(messages, receipt) {
  const first = messages[0]?.role === "system" ? 1 : 0;
  const last = messages.length - 1;
  return messages.flatMap((message, i) => {
    const text = textOf(message) || callsOf(message);
    if (i < first) return lines(message.role, text, "system", noteLine(receipt));
    if (i === last) return lines(message.role, text, "question", introLine(receipt));
    const isSummary = i === first && part(receipt, "summary").tokens > 0;
    return [{ section: isSummary ? "summary" : "history", role: message.role, text }];
  });
}

const callsOf = ({ tool_calls: calls = [] }) =>
  calls.map(({ function: it }) => `${it?.name}(${it?.arguments})`).join("\n");

// Splits a text where `sectionOf(line, section, next)` names another section.
function lines(role, text, begin, sectionOf) {
  const all = text.split("\n");
  const pieces = [];
  let section = begin;
  all.forEach((line, i) => {
    section = sectionOf(line, section, all[i + 1] ?? "");
    const open = pieces.at(-1);
    if (open?.section === section) open.text += `\n${line}`;
    else pieces.push({ section, role, text: line });
  });
  return pieces.filter((piece) => piece.text.trim());
}

const noteLine = (receipt) => (line, section, next) => {
  if (line === part(receipt, "notes").intro && next.startsWith("> ")) return "notes";
  return section === "notes" && line.startsWith("> ") ? "notes" : "system";
};

const introLine = (receipt) => {
  const intros = new Map(receipt.parts.map(({ name, intro }) => [intro, name]));
  let asked = false;
  return (line, section) => {
    if (asked || !line) return section;
    asked = intros.get(line) === "question";
    return intros.get(line) ?? section;
  };
};

// "5 memories, 812 tokens, 38 ms"
export function receiptLine(receipt) {
  const took = receipt.timings_ms.context ?? receipt.timings_ms.total;
  const quoted = part(receipt, "memories").ids.length;
  const words = [plural(quoted, "memory", "memories")];
  words.push(plural(receipt.used, "token"));
  if (took !== undefined) words.push(`${number(took)} ms`);
  return words.join(", ");
}

// The window of a model: `hits` is what was recalled with its reasons, `recalled` only its ids.
export function WindowView({ receipt, messages, hits, recalled }) {
  const [picked, setPicked] = useState(null);
  const texts = useRef(null);
  const pick = (name) => {
    setPicked(name);
    // The texts scroll in a box of their own: the page does not move under the pointer.
    const piece = texts.current?.querySelector(`[data-section="${name}"]`);
    if (piece) texts.current.scrollTop = piece.offsetTop;
  };
  return html`<div class="window">
    <${WindowBar} receipt=${receipt} picked=${picked} onPick=${pick} />
    <${Cuts} receipt=${receipt} />
    ${
      messages &&
      html`<div>
        <h2>What the model sees</h2>
        <section class="seen" aria-label="What the model sees" tabindex="0" ref=${texts}>
          ${piecesOf(messages, receipt).map(
            (piece) =>
              html`<div
                class=${`piece ${picked === piece.section ? "picked" : ""}`}
                data-section=${piece.section}
                onMouseEnter=${() => setPicked(piece.section)}
              >
                <span class="meta">${titleOf(piece.section)} · ${piece.role}</span>
                <div class="text">${piece.text.trim()}</div>
              </div>`,
          )}
        </section>
      </div>`
    }
    ${hits && html`<${Recalled} hits=${hits} receipt=${receipt} />`}
    ${!hits && recalled && html`<${PastRecalled} recalled=${recalled} receipt=${receipt} />`}
  </div>`;
}

// The sections by their tokens, and below them how much of the window they take.
function WindowBar({ receipt, picked, onPick }) {
  const shown = receipt.parts.filter((it) => it.tokens > 0);
  const parts = shown.map((it) => ({
    name: titleOf(it.name),
    slot: SECTIONS[it.name]?.[1],
    value: it.tokens,
    label: plural(it.tokens, "token"),
  }));
  const names = Object.fromEntries(shown.map((it) => [titleOf(it.name), it.name]));
  const pick = (title) => onPick(names[title]);
  const { used, answer, left, window: size } = receipt;
  const room = [
    { name: "used", value: used, slot: "used" },
    { name: "for the answer", value: answer, slot: "answer" },
  ];
  const counted = `counted by ${receipt.counted_by}${receipt.exact ? "" : ", not exactly"}`;
  const free = `${number(answer)} for the answer, ${number(left)} free of ${number(size)} tokens`;
  return html`<figure class="window-bar">
    <${Bar}
      parts=${parts}
      total=${used}
      label=${`The window: ${number(used)} of ${number(size)} tokens`}
      picked=${picked && titleOf(picked)}
      onPick=${pick}
      onHover=${pick}
    />
    <div class="room"><${Bar} parts=${room} total=${size} label=${free} /></div>
    <figcaption>
      ${shown.map(
        (it) =>
          html`<button
            class=${`section-key ${picked === it.name ? "picked" : ""}`}
            aria-pressed=${picked === it.name}
            onMouseEnter=${() => onPick(it.name)}
            onFocus=${() => onPick(it.name)}
            onClick=${() => onPick(it.name)}
          >
            <i class=${`segment-${SECTIONS[it.name]?.[1]}`} aria-hidden="true"></i>
            ${titleOf(it.name)} <b>${number(it.tokens)}</b>
          </button>`,
      )}
      <span class="meta">${`${number(used)} used, ${free}, ${counted}`}</span>
    </figcaption>
  </figure>`;
}

// What did not go in, and why.
function Cuts({ receipt }) {
  const cuts = [
    ...receipt.parts.filter((it) => it.cut > 0 || it.why).map(cutLine),
    ...receipt.late.map((name) => [name, "was not done at the deadline, so it gave nothing"]),
    ...Object.entries(receipt.failed).map(([name, reason]) => [name, reason]),
  ];
  if (!cuts.length) return html`<p class="meta">Nothing was cut.</p>`;
  return html`<section class="cuts" aria-label="What was cut">
    <h2>What was cut</h2>
    <ul>
      ${cuts.map(([what, why]) => html`<li>${what}: ${why}</li>`)}
    </ul>
  </section>`;
}

function cutLine({ name, cut, why }) {
  const unit = { history: "message", memories: "recalled item" }[name] ?? "character";
  const amount = cut > 0 ? ` (${plural(cut, unit)})` : "";
  return [`${titleOf(name)}${amount}`, why || "no room in the window"];
}

// What was recalled for the question, each with its reason and where it went.
function Recalled({ hits, receipt }) {
  if (!hits.length) return html`<p class="meta">Nothing was recalled.</p>`;
  const most = Math.max(...hits.map((hit) => (hit.why ? rankingScore(hit) : 0)));
  return html`<section class="recalled" aria-label="What was recalled">
    <h2>What was recalled</h2>
    <ol>
      ${hits.map(
        (hit) =>
          html`<li>
            <a class="clip" href=${addressOf(hit)}>${hit.text}</a>
            ${hit.why && html`<${ScoreBar} hit=${hit} most=${most} />`}
            <span class="meta">
              <${Kind} kind=${hit.kind} />
              ${hit.score !== undefined && html`<span title="how likely it bears on the question">${percent(hit.score)}</span>`}
              ${hit.why && html`<span>${reason(hit.why)}</span>`}
              ${hit.created_at && html`<${Time} at=${hit.created_at} />`}
              <span>${fate(hit, receipt)}</span>
            </span>
          </li>`,
      )}
    </ol>
  </section>`;
}

// "words #1, meaning #3": its place in each channel; the bar shows what else moved it.
const reason = ({ ranks }) =>
  Object.entries(ranks)
    .map(([channel, rank]) => `${channel} #${rank}`)
    .join(", ");

function fate(hit, receipt) {
  if (part(receipt, "memories").ids.includes(hit.id)) return "quoted";
  if (part(receipt, "history").ids.includes(hit.id)) return "in the conversation already";
  if (hit.kind === "note") return part(receipt, "notes").tokens ? "among the notes" : "not quoted";
  return part(receipt, "memories").cut ? "not quoted" : "too far below the best to be quoted";
}

export const addressOf = ({ kind, id }) =>
  kind === "note"
    ? href({ view: "notes" })
    : kind === "article"
      ? href({ view: "articles", show: `article:${id}` })
      : href({ show: `${kind}:${id}` });

// What was recalled for a past turn: ids, whose texts are read now.
function PastRecalled({ recalled, receipt }) {
  const read = useRead(
    (signal) => Promise.all(recalled.map((it) => textNow(it, signal))),
    [recalled],
  );
  return html`<${Loaded} read=${read} rows=${3}
    >${(hits) => html`<${Recalled} hits=${hits} receipt=${receipt} />`}<//
  >`;
}

const PATHS = { memory: "memories", message: "messages", fact: "facts", article: "articles" };

async function textNow(item, signal) {
  try {
    if (!PATHS[item.kind]) return { ...item, text: "The notes" };
    const path = `${PATHS[item.kind]}/${encodeURIComponent(item.id)}`;
    const found = await api.get(path, {}, { signal });
    return { ...item, text: statement(found), created_at: found.created_at };
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return { ...item, text: error.status === 404 ? "forgotten since" : error.message };
  }
}

const statement = (it) =>
  it.message
    ? textOf(it.message)
    : (it.text ?? it.title ?? `${it.subject} ${it.predicate} ${it.object}`);
