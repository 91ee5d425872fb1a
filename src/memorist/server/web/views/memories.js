// Memories and facts: found by words and facets, newest first; what changes meanwhile changes in
// its place.

import { api } from "../api.js";
import { KINDS } from "../edit.js";
import { count, day, number } from "../format.js";
import { inspect } from "../inspector.js";
import { go, href } from "../route.js";
import {
  Empty,
  Kind,
  Marked,
  Problem,
  Skeleton,
  State,
  Time,
  VirtualList,
  html,
  isOver,
  useChanges,
  useEffect,
  useMemo,
  usePages,
  useRead,
  useRef,
  useState,
  useTyped,
} from "../ui.js";

const SOURCES = ["user", "assistant", "tool", "web", "import", "system"];
const CATEGORIES = ["knowledge", "user_preferences", "task_history", "personal"];
const DAYS = { day: 1, week: 7, month: 30, year: 365 };
const SINCE = [
  ["day", "last day"],
  ["week", "last week"],
  ["month", "last 30 days"],
  ["year", "last year"],
];
const TIERS = [
  ["short", "short-term"],
  ["long", "long-term"],
];
// What narrows each list: its name in the address, its label, and its choices. Facets without
// choices are set by links, as of a fact's subject, and shown only then.
const MEMORY_FACETS = [
  [
    "state",
    "What holds now",
    [
      ["over", "what is over"],
      ["all", "all of it"],
    ],
  ],
  ["kind", "Any kind", KINDS],
  ["category", "Any category", CATEGORIES],
  ["tier", "Any tier", TIERS],
  ["source", "Any source", SOURCES],
  ["since", "Any time", SINCE],
  ["tag", "tag"],
];
const FACT_FACETS = [
  ["state", "What holds now", [["all", "of all times"]]],
  ["source", "Any source", SOURCES],
  ["subject", "subject"],
  ["predicate", "predicate"],
  ["object", "object"],
];

export default function Memories({ route }) {
  const facts = route.query.what === "facts";
  const facets = facts ? FACT_FACETS : MEMORY_FACETS;
  const [typed, setTyped, text] = useSearch(route.query.text ?? "");
  const query = useQuery(facts, facets, { ...route.query, text });
  const pages = usePages(facts ? "facts" : "memories", query);
  const fresh = useLive(pages, facts, query);
  const kind = facts ? "fact" : "memory";
  const narrowed = text || facets.some(([name]) => route.query[name]);
  return html`<div class="pane">
    <${Tabs} facts=${facts} />
    <div class="toolbar" role="search" aria-label=${facts ? "Facts" : "Memories"}>
      <input
        type="search"
        aria-label=${facts ? "Search facts" : "Search memories"}
        placeholder=${facts ? "Search facts" : "Search memories"}
        value=${typed}
        onInput=${(event) => setTyped(event.target.value)}
      />
      <${Shown} pages=${pages} fresh=${fresh} />
      <${Facets} facets=${facets} query=${route.query} searching=${Boolean(text)} />
    </div>
    ${!pages.error && pages.items.length > 0 && html`<${Heads} facts=${facts} />`}
    ${
      pages.error
        ? html`<${Problem} error=${pages.error} retry=${pages.reload} />`
        : !pages.ready && !pages.items.length
          ? pages.slow && html`<${Skeleton} />`
          : html`<${VirtualList}
              key=${pages.key}
              label=${facts ? "Facts" : "Memories"}
              items=${pages.items}
              onMore=${pages.more}
              onOpen=${(item) => go({ show: `${kind}:${item.id}` })}
              keys=${{
                e: (item) => inspect(kind, item.id, "edit"),
                f: (item) => inspect(kind, item.id, "forget"),
              }}
              selected=${(route.query.show ?? "").replace(/^\w+:/, "")}
              empty=${pages.ready && html`<${Nothing} facts=${facts} narrowed=${narrowed} facets=${facets} />`}
              render=${(item) => html`<${facts ? FactRow : MemoryRow} item=${item} text=${text} />`}
            />`
    }
  </div>`;
}

// What is typed, and what is searched for: the words in the address, 120 ms after the last key.
function useSearch(text) {
  const [typed, setTyped] = useState(text);
  const settled = useTyped(typed);
  const written = useRef(text);
  useEffect(() => {
    if (settled === written.current) return;
    written.current = settled;
    go({ text: settled }, { replace: true });
  }, [settled]);
  useEffect(() => {
    if (text === written.current) return;
    written.current = text; // the address changed by itself: back, or a link
    setTyped(text);
  }, [text]);
  return [typed, setTyped, text];
}

// What the API is asked for.
function useQuery(facts, facets, { agent, text, ...chosen }) {
  const since = facts ? undefined : chosen.since;
  const after = useMemo(
    () => since && new Date(Date.now() - DAYS[since] * 86_400_000).toISOString(),
    [since],
  );
  const narrowing = Object.fromEntries(
    facets.map(([name]) => [name, chosen[name]]).filter(([name]) => name !== "since"),
  );
  if (facts) {
    narrowing.always = narrowing.state === "all" ? true : undefined;
    delete narrowing.state;
  }
  return { agent, text, after, ...narrowing, newest_first: true };
}

// Changes as they happen: a row changes in its place, and what is new waits above the list until
// somebody asks for it, so that nothing moves under the pointer. Returns how many are new.
function useLive(pages, facts, query) {
  const [fresh, setFresh] = useState(0);
  const path = facts ? "facts" : "memories";
  const timer = useRef(0);
  const shown = useRef(pages);
  shown.current = pages;
  useEffect(() => setFresh(0), [pages.key, pages.items]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const replace = (id, item) =>
    pages.patch((items) => items.map((old) => (old.id === id ? item : old)));
  const refresh = async (id) => {
    const item = await api.get(`${path}/${encodeURIComponent(id)}`).catch(() => null);
    if (!item) return replace(id, { ...shown.current.items.find((it) => it.id === id), gone: true });
    const listed = shown.current.items.some((it) => it.id === item.superseded_by);
    if (!isOver(item) || !item.superseded_by || listed || query.state || query.always)
      return replace(id, item);
    // What supersedes it takes its place.
    const next = await api
      .get(`${path}/${encodeURIComponent(item.superseded_by)}`)
      .catch(() => null);
    return replace(id, next ?? item);
  };
  const look = async () => {
    const page = await api.get(path, { ...query, limit: 50 }).catch(() => ({ items: [] }));
    if (shown.current.key !== pages.key) return; // another list is shown by now
    const known = new Set(shown.current.items.map((item) => item.id));
    setFresh(page.items.filter((item) => !known.has(item.id)).length);
  };
  useChanges(({ event, data }) => {
    if (event !== (facts ? "fact" : "memory")) return;
    if (shown.current.items.some((item) => item.id === data.id)) refresh(data.id);
    clearTimeout(timer.current);
    timer.current = setTimeout(look, 400);
  });
  return fresh;
}

function Tabs({ facts }) {
  const counts = useRead((signal) => api.get("counts", {}, { signal }), []);
  const timer = useRef(0);
  useChanges(() => {
    clearTimeout(timer.current);
    timer.current = setTimeout(counts.reload, 1_000);
  });
  const tab = (label, name, shown, held) =>
    html`<a
      href=${href({ view: "memories", what: shown ? "facts" : null, show: null, ...CLEARED })}
      aria-current=${facts === shown ? "page" : undefined}
      >${label}
      ${
        counts.data &&
        html`<span class="meta" title=${`${count(counts.data[name])} of all times`}
          >${count(counts.data[held])}</span
        >`
      }</a
    >`;
  return html`<nav class="tabs" aria-label="What is remembered">
    ${tab("Memories", "memories", false, "memories_current")}
    ${tab("Facts", "facts", true, "facts_current")}
  </nav>`;
}

const CLEARED = Object.fromEntries(
  [...MEMORY_FACETS, ...FACT_FACETS].map(([name]) => [name, null]),
);

function Facets({ facets, query, searching }) {
  return html`<div class="facets">
    ${facets.map(([name, label, choices]) => {
      const value = query[name] ?? "";
      const pick = (chosen) => go({ [name]: chosen || null });
      if (!choices)
        return (
          value &&
          html`<button
            class="chip"
            aria-label=${`Remove ${label}: ${value}`}
            onClick=${() => pick("")}
          >
            ${label}: ${value} ✕
          </button>`
        );
      const options = choices.map((choice) => (Array.isArray(choice) ? choice : [choice, choice]));
      if (value && !options.some(([choice]) => choice === value)) options.push([value, value]);
      return html`<select
        aria-label=${name}
        class=${value ? "set" : ""}
        value=${value}
        disabled=${name === "state" && searching}
        title=${name === "state" && searching ? "Words are searched in what holds now" : undefined}
        onChange=${(event) => pick(event.target.value)}
      >
        <option value="">${label}</option>
        ${options.map(([choice, words]) => html`<option value=${choice}>${words}</option>`)}
      </select>`;
    })}
  </div>`;
}

// How many are listed, and how many came since.
function Shown({ pages, fresh }) {
  if (fresh)
    return html`<button class="fresh" onClick=${pages.reload}>${number(fresh)} new: show</button>`;
  if (!pages.ready) return null;
  return html`<span class="meta" role="status"
    >${number(pages.items.length)}${pages.done ? "" : "+"} listed</span
  >`;
}

function Nothing({ facts, narrowed, facets }) {
  const clear = Object.fromEntries(facets.map(([name]) => [name, null]));
  if (narrowed)
    return html`<div class="empty">
      <p>Nothing is found with these words and filters.</p>
      <button onClick=${() => go({ ...clear, text: null })}>Clear them</button>
    </div>`;
  return html`<${Empty} command='memorist remember "I live in Berlin"'
    >${facts ? "No facts are known yet: they are read out of what is said." : "Nothing is remembered yet."}<//
  >`;
}

const words = (text) => text.split(/\s+/).filter((word) => word.length > 1);

// What the columns are, above a list that is wide enough to have them.
const Heads = ({ facts }) =>
  html`<div class="heads" aria-hidden="true">
    <div class="row">
      <span class="grow">${facts ? "Fact" : "Memory"}</span>
      ${!facts && html`<span class="kind">Kind</span>`}
      <span class="meta wide">From</span>
      ${facts ? html`<span class="meta wide">True since</span>` : html`<span class="importance wide">Importance</span>`}
      <span class="state">State</span><span class="when">Said</span>
    </div>
  </div>`;

const MemoryRow = ({ item, text }) => html`
  <span class="grow clip"><${Marked} text=${item.text} words=${words(text)} /></span>
  <${Kind} kind=${item.kind} />
  <span class="meta wide">${item.source}</span>
  <meter
    class="wide"
    min="0"
    max="1"
    value=${item.importance}
    title=${`importance ${item.importance}`}
  ></meter>
  <${State} item=${item} /><${Time} at=${item.created_at} />
`;

const FactRow = ({ item, text }) => html`
  <span class="grow clip"
    ><${Marked} text=${item.subject} words=${words(text)} />${" "}
    <em><${Marked} text=${item.predicate} words=${words(text)} /></em>${" "}
    <${Marked} text=${item.object} words=${words(text)}
  /></span>
  <span class="meta wide">${item.source}</span>
  <span class="meta wide" title="true since"
    >${item.valid_from ? day(item.valid_from) : "always"}</span
  >
  <${State} item=${item} /><${Time} at=${item.said_at ?? item.known_from} />
`;
