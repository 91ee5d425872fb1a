// Why not: an item that was expected of an answer, and where it stands.

import { api } from "./api.js";
import { exactTime, number, percent, textOf } from "./format.js";
import { go, href } from "./route.js";
import { Explanation, ScoreBar, partsOf, rankingScore } from "./signals.js";
import { Kind, Loaded, State, heirOf, html, isOver, useRead, useState, useTyped } from "./ui.js";

const PATHS = { memory: "memories", fact: "facts", message: "messages" };
const FILTERS = ["kind", "role", "category", "tags", "after", "before", "agent", "session"];
const LOOKS_LIKE_ID = /^(?:(memory|fact|message):)?([0-9a-f]{8}-?[0-9a-f-]{20,28})$/i;
const idOf = (hit) => `${hit.kind}:${hit.id}`;
const wordsOf = (item) =>
  item.message
    ? textOf(item.message)
    : (item.text ?? `${item.subject} ${item.predicate} ${item.object}`);

export function WhyNot({ expect, answer, wide, body }) {
  const read = useRead(
    async (signal) => (expect && wide ? judge(expect, answer, wide, body, signal) : null),
    [expect, wide],
  );
  return html`<section class="why-not" aria-label="Why not">
    <h2>Expected something else?</h2>
    <${Picker} />
    ${
      expect &&
      html`<${Loaded} read=${read}
        >${(verdict) => verdict && html`<${Verdict} ...${verdict} question=${body.question} />`}<//
      >`
    }
  </section>`;
}

// Words find memories and facts; an id is taken as it is.
function Picker() {
  const [typed, setTyped] = useState("");
  const settled = useTyped(typed).trim();
  const read = useRead(async (signal) => find(settled, signal), [settled]);
  const found = read.data ?? [];
  const submit = (event) => {
    event.preventDefault();
    if (found[0]) pick(found[0].expect);
  };
  const pick = (expect) => {
    setTyped("");
    go({ expect });
  };
  return html`<form class="picker" onSubmit=${submit} role="search" aria-label="What was expected">
    <input
      type="search"
      aria-label="What was expected"
      placeholder="Paste its id, or some of its words"
      autocomplete="off"
      value=${typed}
      onInput=${(event) => setTyped(event.target.value)}
    />
    ${
      settled &&
      read.data &&
      (found.length
        ? html`<ul>
            ${found.map(
              ({ expect, item, kind }) =>
                html`<li key=${expect}>
                  <button type="button" class="quiet" onClick=${() => pick(expect)}>
                    <${Kind} kind=${kind} /> ${wordsOf(item)}
                  </button>
                </li>`,
            )}
          </ul>`
        : html`<p class="meta">Nothing that holds has these words or this id.</p>`)
    }
  </form>`;
}

async function find(typed, signal) {
  if (!typed) return [];
  const [, named, id] = LOOKS_LIKE_ID.exec(typed) ?? [];
  if (id) {
    const tries = (named ? [named] : Object.keys(PATHS)).map((kind) =>
      get(kind, id, signal).then((item) => item && { expect: `${kind}:${id}`, kind, item }),
    );
    return (await Promise.all(tries)).filter(Boolean);
  }
  const asked = { text: typed, limit: 5, newest_first: true };
  const [memories, facts] = await Promise.all([
    api.get("memories", asked, { signal }),
    api.get("facts", asked, { signal }),
  ]);
  const of = (kind) => (item) => ({ expect: `${kind}:${item.id}`, kind, item });
  return [...memories.items.map(of("memory")), ...facts.items.map(of("fact"))];
}

const get = (kind, id, signal) =>
  api.get(`${PATHS[kind]}/${encodeURIComponent(id)}`, {}, { signal }).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });

// Where an item stands: the first of these that is true.
async function judge(expect, answer, wide, body, signal) {
  const [kind, id] = [expect.slice(0, expect.indexOf(":")), expect.slice(expect.indexOf(":") + 1)];
  const item = PATHS[kind] ? await get(kind, id, signal) : null;
  if (!item) return { title: "It is not remembered, or is not yours to see." };
  const said = { item, kind, expect };
  const place = (hits) => placeOf(hits, expect, item);
  const given = place(answer.hits);
  if (given) return { ...said, ...standing(given, "It was recalled") };
  const found = place(wide.hits);
  if (found) return { ...said, ...leftOut(found, answer, body) };
  if (kind !== "message" && isOver(item)) return { ...said, ...over(item, kind) };
  const filtered = FILTERS.filter((name) => body[name] !== undefined);
  if (filtered.length) {
    const open = Object.fromEntries(
      Object.entries(body).filter(([name]) => !filtered.includes(name)),
    );
    const free = place((await api.post("recall", widest(open), { signal })).hits);
    if (free)
      return {
        ...said,
        ...standing(free, `The filters cut it (${filtered.join(", ")}): without them it stands`),
      };
  }
  return {
    ...said,
    title: "No channel found it.",
    text: `It is not among the ${number(wide.hits.length)} that words, meaning, links and recency find for this question, with no floor and no deadline.`,
  };
}
const widest = (body) => ({ ...body, min_score: 0, limit: 100, deadline_ms: null });

// Its place among hits; a message stands for what was derived from it alone.
function placeOf(hits, expect, item) {
  const own = hits.findIndex((hit) => idOf(hit) === expect);
  const sources = new Set((item.sources ?? []).map((id) => `message:${id}`));
  const at = own >= 0 ? own : hits.findIndex((hit) => sources.has(idOf(hit)));
  return at < 0 ? null : { place: at + 1, hit: hits[at], stands: own < 0 };
}

const standing = ({ place, hit, stands }, words) => ({
  hit,
  title: `${words} at place ${number(place)}, with ${percent(hit.score)}.`,
  text: stands
    ? "The message it came from stands for it: both say the same, and would take two places."
    : "",
});

function leftOut(found, answer, body) {
  const { score } = found.hit;
  if (score < body.min_score)
    return standing(found, `It is below the floor of ${percent(body.min_score)}: found`);
  const missed = [...answer.late, ...Object.keys(answer.failed)];
  if (found.place > body.limit)
    return standing(found, `The limit of ${number(body.limit)} cut it: it stands`);
  return standing(
    found,
    missed.length
      ? `${missed.join(", ")} did not answer in time: without a deadline it stands`
      : "Without a deadline it stands",
  );
}

function over(item, kind) {
  const end = item.ended_at ?? item.known_to ?? item.valid_to;
  const by = heirOf(item);
  return {
    title: by ? "It is superseded." : "It is over.",
    text: `Recall gives what holds; this ended on ${exactTime(end)}${item.reason ? `: ${item.reason}` : ""}.`,
    link: by && href({ show: `${kind}:${by}` }),
  };
}

function Verdict({ item, kind, expect, title, text, link, hit, question }) {
  const [picked, setPicked] = useState(null);
  const strongest = hit && partsOf(hit).sort((one, two) => two.value - one.value)[0]?.name;
  return html`<div class="verdict" role="status">
    ${
      item &&
      html`<p class="clip">
        <${Kind} kind=${kind} /> <a href=${href({ show: expect })}>${wordsOf(item)}</a>${" "}
        ${kind !== "message" && html`<${State} item=${item} />`}
      </p>`
    }
    <p><strong>${title}</strong></p>
    ${text && html`<p>${text}</p>`} ${link && html`<p><a href=${link}>What holds instead</a></p>`}
    ${
      hit &&
      html`<${ScoreBar} hit=${hit} most=${rankingScore(hit)} picked=${picked} onPick=${setPicked} />
        <${Explanation} hit=${hit} signal=${picked ?? strongest} question=${question} />`
    }
  </div>`;
}
