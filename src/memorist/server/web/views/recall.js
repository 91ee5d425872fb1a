// The recall console: a question, what was found and why, what each channel gave and how long it
// took, and why something that was expected is not there.

import { api } from "../api.js";
import { milliseconds, number, percent, plural } from "../format.js";
import { useKeys } from "../keys.js";
import { go, href } from "../route.js";
import { CHANNELS, Explanation, Legend, Matched, ScoreBar, rankingScore } from "../signals.js";
import { Empty, Kind, Loaded, Time, html, useRead, useRef, useState } from "../ui.js";
import { WhyNot } from "../whynot.js";

const DEADLINES = [
  ["20", "20 ms"],
  ["", "50 ms"],
  ["200", "200 ms"],
  ["1000", "1 s"],
  ["none", "no deadline"],
];
const FOUND = ["message", "memory", "fact", "note", "article", "entry"];
const ROLES = ["user", "assistant", "system", "tool"];
const FIELDS = "question deadline limit floor kind role category tag after before".split(" ");

// The request that an address stands for.
function bodyOf(query, me) {
  const moment = (date) => date && new Date(date).toISOString();
  const { question, agent, session, kind, role, category, tag } = query;
  const filters = { kind, role, category, tags: tag };
  const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value));
  const [after, before] = [moment(query.after), moment(query.before)];
  return {
    question,
    limit: Number(query.limit) || 10,
    min_score: floorOf(query, me),
    deadline_ms: query.deadline === "none" ? null : Number(query.deadline) || 50,
    ...given,
    ...(agent && { agent }),
    ...(session && { session }),
    ...(after && { after }),
    ...(before && { before }),
  };
}
const floorOf = (query, me) => Number(query.floor ?? me.min_score);

// All that can be found: no floor, no deadline, a hundred hits.
const widened = (body) => ({ ...body, min_score: 0, limit: 100, deadline_ms: null });

export default function Recall({ route, me }) {
  const { query } = route;
  const key = JSON.stringify(FIELDS.map((name) => query[name]));
  const body = bodyOf(query, me);
  const asked = Boolean(query.question?.trim());
  const read = useRead((signal) => asked && api.post("recall", body, { signal }), [key]);
  // Asked second, as the two would share the first one's time.
  const wide = useRead(
    async (signal) => (read.data ? api.post("recall", widened(body), { signal }) : undefined),
    [read.data],
  );
  return html`<div class="pane">
    <${Ask} key=${key} query=${query} me=${me} />
    <div class="scroll">
      ${
        asked
          ? html`<${Loaded} read=${read}
              >${(answer) =>
                answer &&
                html`
                  <${Answer} answer=${answer} wide=${wide.data} body=${body} />
                  <${WhyNot}
                    expect=${query.expect}
                    answer=${answer}
                    wide=${wide.data}
                    body=${body}
                  />
                `}<//
            >`
          : html`<${Empty} command='memorist recall "where does Ada live?"'
              >Ask the memory something: each hit says why it was found, and what was not found says
              why, too.<//
            >`
      }
    </div>
  </div>`;
}

function Ask({ query, me }) {
  const form = useRef(null);
  const submit = (event) => {
    event?.preventDefault();
    const data = Object.fromEntries(new FormData(form.current));
    if (Number(data.floor) === me.min_score) data.floor = null;
    go(data);
  };
  const change = () => form.current.question.value && form.current.requestSubmit();
  const chosen = (name, label, choices) =>
    html`<select
      name=${name}
      aria-label=${label}
      class=${query[name] ? "set" : ""}
      onChange=${change}
    >
      <option value="">${label}</option>
      ${choices.map((it) => html`<option value=${it} selected=${query[name] === it}>${it}</option>`)}
    </select>`;
  const typed = (name, label, more) =>
    html`<label class="meta"
      >${label}<input name=${name} defaultValue=${query[name] ?? ""} onChange=${change} ...${more}
    /></label>`;
  return html`<form class="toolbar ask" ref=${form} onSubmit=${submit} aria-label="Ask the memory">
    <input
      name="question"
      type="search"
      aria-label="Question"
      placeholder="Ask the memory: where does Ada live?"
      autocomplete="off"
      maxlength="8000"
      defaultValue=${query.question ?? ""}
    />
    <button class="primary">Ask</button>
    <div class="facets">
      <select name="deadline" aria-label="Deadline" onChange=${change}>
        ${DEADLINES.map(
          ([value, words]) =>
            html`<option value=${value} selected=${(query.deadline ?? "") === value}>
              ${words}
            </option>`,
        )}
      </select>
      ${chosen("kind", "Any kind", FOUND)} ${chosen("role", "Any role", ROLES)}
      ${typed("limit", "limit", { type: "number", min: 1, max: 200, placeholder: 10 })}
      <label class="meta" title="hits with a lower score are left out"
        >floor<input
          name="floor"
          type="number"
          min="0"
          max="1"
          step="any"
          defaultValue=${floorOf(query, me)}
          onChange=${change}
      /></label>
      <details open=${["category", "tag", "after", "before"].some((name) => query[name])}>
        <summary>More filters</summary>
        ${typed("category", "category")} ${typed("tag", "tag")}
        ${typed("after", "after", { type: "date" })} ${typed("before", "before", { type: "date" })}
      </details>
    </div>
  </form>`;
}

const idOf = (hit) => `${hit.kind}:${hit.id}`;

function Answer({ answer, wide, body }) {
  const [below, setBelow] = useState(false);
  const table = useRef(null);
  useRowKeys(table);
  const given = new Set(answer.hits.map(idOf));
  const others = (wide?.hits ?? []).filter((hit) => !given.has(idOf(hit)));
  const floor = body.min_score;
  // Without a floor what ranks high scores no less than what ranks below it, so that some would pass.
  const isCut = answer.hits.length >= body.limit || answer.late.length > 0;
  const cut = isCut ? others.filter((hit) => hit.score >= floor) : [];
  const under = others.filter((hit) => !cut.includes(hit));
  const most = Math.max(...[...answer.hits, ...others].map(rankingScore), 0.001);
  const rows = (hits, over) =>
    hits.map(
      (hit) =>
        html`<${HitRow}
          key=${idOf(hit)}
          hit=${hit}
          most=${most}
          question=${body.question}
          left=${over}
        />`,
    );
  const deadline = body.deadline_ms ? ` of ${milliseconds(body.deadline_ms)}` : "";
  const took = `in ${milliseconds(answer.timings_ms.total ?? 0)}${deadline}`;
  return html`
    <div class="said">
      <strong>${answer.hits.length ? plural(answer.hits.length, "hit") : "No hits"}</strong>
      <span class="meta">${took}</span>
      <a href=${href({ view: "context", question: body.question })}>In a model's window</a>
      <${Legend} />
    </div>
    ${answer.reason && html`<p class="note">${sentence(answer.reason)}</p>`}
    <${Missed} answer=${answer} />
    <table class="hits" ref=${table} aria-label="Hits">
      <thead>
        <tr>
          <th class="number">Score</th>
          <th>What was found</th>
          ${CHANNELS.map((name) => html`<${ChannelHead} name=${name} answer=${answer} />`)}
        </tr>
      </thead>
      <tbody>
        ${rows(answer.hits, false)}
        ${cut.length > 0 && html`<${Line}>${leftOut(cut, answer, body)}<//>`}
        ${below && rows(cut, true)}
        <${Line} css="floor">
          ${floorWords(answer, floor)}
          ${
            others.length > 0 &&
            html`<button class="quiet" aria-expanded=${below} onClick=${() => setBelow(!below)}>
              ${below ? "Hide what was left out" : `Show ${number(others.length)} that were left out`}
            </button>`
          }
        <//>
        ${below && rows(under, true)}
      </tbody>
    </table>
  `;
}

const leftOut = (cut, answer, body) =>
  `Left out by the limit of ${number(body.limit)}${answer.late.length ? ", or found too late" : ""}: ${number(cut.length)}`;
const floorWords = (answer, floor) =>
  answer.hits.some((hit) => hit.score < floor)
    ? `The floor is ${percent(floor)}, and does not count where words alone judge`
    : `The floor: ${percent(floor)}`;
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

const Line = ({ css = "", children }) =>
  html`<tr class=${`line ${css}`}>
    <td colspan=${2 + CHANNELS.length}><div>${children}</div></td>
  </tr>`;

// j and k move from hit to hit.
function useRowKeys(table) {
  const step = (by) => () => {
    const links = [...table.current.querySelectorAll("a.hit")];
    const here = links.indexOf(document.activeElement.closest("tr")?.querySelector("a.hit"));
    links[Math.max(0, Math.min(links.length - 1, here + by))]?.focus();
  };
  useKeys({ j: step(1), k: step(-1) });
}

// The channels that gave nothing, and why.
function Missed({ answer }) {
  const failed = Object.entries(answer.failed);
  if (!answer.late.length && !failed.length) return null;
  return html`<p class="note" role="status">
    ${answer.late.length > 0 && `Late, and left out: ${answer.late.join(", ")}. `}
    ${failed.map(([name, reason]) => `Failed: ${name} (${reason}). `)}
  </p>`;
}

function ChannelHead({ name, answer }) {
  const took = answer.timings_ms[name];
  const state = answer.late.includes(name) ? "late" : name in answer.failed ? "failed" : "";
  return html`<th class="channel">
    ${name}
    <span class=${`meta ${state && "bad"}`}
      >${state || (took === undefined ? "not asked" : milliseconds(took))}</span
    >
  </th>`;
}

function HitRow({ hit, most, question, left }) {
  const [picked, setPicked] = useState(null);
  const pick = (name) => setPicked(picked === name ? null : name);
  const { ranks, scores } = hit.why;
  return html`<tr class=${left ? "left" : ""}>
    <td class="number">${percent(hit.score)}</td>
    <td>
      <a class="hit text" href=${placeOf(hit)}
        ><${Matched} text=${hit.text} signal="words" question=${question}
      /></a>
      <p class="meta badges">
        <${Kind} kind=${hit.kind} />
        ${hit.speaker ?? hit.role} <${Time} at=${hit.created_at} />
        ${hit.over && html`<span class="state over">${hit.over}</span>`}
        ${ranks.update && html`<span>above what it updates</span>`}
        ${ranks.fact && html`<span>states the fact asked for</span>`}
        <span class="narrow"
          >${CHANNELS.filter((it) => ranks[it])
            .map((it) => `${it} #${ranks[it]}`)
            .join(", ")}</span
        >
      </p>
      <${ScoreBar} hit=${hit} most=${most} picked=${picked} onPick=${pick} />
      ${picked && html`<${Explanation} hit=${hit} signal=${picked} question=${question} />`}
    </td>
    ${CHANNELS.map(
      (name) =>
        html`<td class="channel">
          ${ranks[name] ? html`#${ranks[name]} <span class="meta">${scores[name].toFixed(2)}</span>` : html`<span class="meta">–</span>`}
        </td>`,
    )}
  </tr>`;
}

// Where a hit is shown.
function placeOf(hit) {
  if (["message", "memory", "fact"].includes(hit.kind)) return href({ show: idOf(hit) });
  if (hit.kind === "article") return href({ view: "articles", article: hit.id });
  return href({ view: hit.kind === "note" ? "notes" : "memories" });
}
