// Graph: one entity and its neighbourhood. Facts of all times are placed at once, so that the
// slider moves through time and everything stays where it is.

import { api } from "../api.js";
import { day } from "../format.js";
import { useKeys } from "../keys.js";
import { go, href } from "../route.js";
import {
  Empty,
  Loaded,
  VirtualList,
  html,
  say,
  useAddress,
  useMemo,
  useNews,
  useRead,
  useRef,
  useState,
  useTyped,
} from "../ui.js";
import { Canvas } from "./graph-canvas.js";
import { place } from "./graph-layout.js";

const MOST = 150;
const USER = "user"; // how facts name the one whose memory it is
const DAY = 86_400_000;
const REPLACE = { replace: true };
const fold = (name) => name.trim().toLowerCase();

export default function Graph({ route, me }) {
  const { entity = USER, expand = "", as_of: asOf, agent } = route.query;
  const names = [entity, ...expand.split("\n").filter(Boolean)];
  const news = useNews("fact");
  const read = useRead(
    (signal) => Promise.all(names.map((name) => neighbourhood(name, agent, signal))),
    [entity, expand, agent, news],
  );
  return html`<div class="pane">
    <${Loaded} read=${read}
      >${(found) =>
        found.every((one) => !one.facts.length)
          ? html`<${Finder} /><${Empty} command='memorist remember "I live in Berlin"'
                >Nothing is known about ${entity === USER ? "the user" : entity} yet.<//
              >`
          : html`<${Neighbourhood}
              found=${found}
              centre=${entity}
              expanded=${names}
              asOf=${asOf}
              route=${route}
              who=${route.query.user ?? me.user}
            />`}<//
    >
  </div>`;
}

async function neighbourhood(name, agent, signal) {
  const query = { agent, always: true, limit: MOST };
  try {
    return await api.get(`entities/${encodeURIComponent(name)}/neighbourhood`, query, { signal });
  } catch (error) {
    if (error.status === 404) return { name, facts: [], more: false };
    throw error;
  }
}

// The entities and facts of several neighbourhoods, at most MOST entities.
function join(found, centre, who) {
  const facts = [...new Map(found.flatMap((one) => one.facts).map((fact) => [fact.id, fact]))];
  const same = aliases(facts.map(([, fact]) => fact));
  const key = (name) => same.get(fold(name)) ?? fold(name);
  const nodes = new Map([[key(centre), { key: key(centre), name: centre, facts: 0 }]]);
  const edges = [];
  let left = 0;
  for (const [, fact] of facts) {
    const ends = [fact.subject, fact.object];
    if (new Set([...nodes.keys(), ...ends.map(key)]).size > MOST) {
      left += 1;
      continue;
    }
    for (const name of ends) {
      const node = nodes.get(key(name)) ?? { key: key(name), name, facts: 0 };
      node.facts += 1;
      nodes.set(node.key, node);
    }
    edges.push({ fact, from: key(fact.subject), to: key(fact.object) });
  }
  for (const node of nodes.values()) {
    node.label = labelOf(node, facts, who);
    node.names = [node.name, ...[...same.keys()].filter((name) => same.get(name) === node.key)];
  }
  return { nodes: [...nodes.values()], edges, left };
}

// "user's sister" is the Lena of "user has sister Lena", and a user's own name is the user.
function aliases(facts) {
  const same = new Map();
  const counts = new Map();
  for (const fact of facts.filter((one) => fold(one.subject) === USER && !one.valid_to)) {
    const role = /^has (.+)$/.exec(fold(fact.predicate))?.[1];
    if (fold(fact.predicate) === "name") same.set(fold(fact.object), USER);
    if (!role) continue;
    counts.set(role, (counts.get(role) ?? 0) + 1);
    if (counts.get(role) === 1) same.set(`user's ${role}`, fold(fact.object));
    else same.delete(`user's ${role}`); // which of them, nobody knows
  }
  return same;
}

function labelOf(node, facts, who) {
  if (node.key !== USER) {
    const spelled = facts.find(([, fact]) => fold(fact.object) === node.key)?.[1].object;
    return spelled ?? node.name;
  }
  const named = facts.find(([, it]) => fold(it.subject) === USER && fold(it.predicate) === "name");
  return named?.[1].object ?? who ?? USER;
}

// What a fact is by the end of a day: "holds", "ended", or "later". What ends today has not yet.
function phase(fact, moment) {
  if (fact.valid_from && new Date(fact.valid_from) > moment) return "later";
  const end = fact.valid_to ?? fact.known_to;
  return end && new Date(end) <= Math.min(moment, Date.now()) ? "ended" : "holds";
}

function Neighbourhood({ found, centre, expanded, asOf, route, who }) {
  const graph = useMemo(() => join(found, centre, who), [found]);
  const before = useRef({ centre: null, spots: new Map() });
  const spots = useMemo(() => {
    const kept = before.current.centre === centre ? before.current.spots : new Map();
    const names = graph.nodes.map((node) => node.key);
    const pairs = graph.edges.map((edge) => [edge.from, edge.to]);
    return place(names, pairs, kept, innerWidth < 640 ? 0.6 : 1.75);
  }, [graph]);
  before.current = { centre, spots };
  const moment = new Date(asOf ? Date.parse(asOf) + DAY - 1 : Date.now() + DAY); // by whole days
  const edges = graph.edges.map((edge) => ({ ...edge, phase: phase(edge.fact, moment) }));
  const shown = edges.filter((edge) => edge.phase !== "later");
  const there = new Set([graph.nodes[0].key, ...shown.flatMap((edge) => [edge.from, edge.to])]);
  const nodes = graph.nodes.filter((node) => there.has(node.key));
  const known = new Set(expanded.map(fold));
  const open = (node) => {
    if (node.key === graph.nodes[0].key) return;
    if (known.has(fold(node.name))) return centreOn(node);
    if (graph.nodes.length >= MOST)
      return say(`At most ${MOST} entities are shown: centre on one.`);
    go({ expand: [...expanded.slice(1), ...node.names].join("\n") });
  };
  const asList = route.query.as === "list";
  const more = graph.left > 0 || found.some((one) => one.more);
  return html`<${Finder}
      >${html`<button aria-pressed=${asList} onClick=${() => go({ as: asList ? null : "list" })}>
        As a list
      </button>`}<//
    >
    ${
      asList
        ? html`<${FactList} edges=${shown} selected=${route.query.show} />`
        : html`<${Canvas}
            label=${`${graph.nodes[0].label} and ${nodes.length - 1} entities around`}
            key=${centre}
            nodes=${nodes}
            edges=${shown}
            spots=${spots}
            known=${known}
            selected=${route.query.show}
            onOpen=${open}
            onCentre=${centreOn}
          />`
    }
    <${TimeSlider} edges=${graph.edges} asOf=${asOf} />
    ${more && html`<p class="remark meta">More is known than is shown: centre on another entity.</p>`}`;
}

const centreOn = (node) => go({ entity: node.name, expand: null });

// Finds an entity by the beginning of its name, and goes there.
function Finder({ children }) {
  const [text, setText] = useState("");
  const settled = useTyped(text);
  const read = useRead(
    (signal) =>
      settled ? api.get("entities", { text: settled, limit: 20 }, { signal }) : { items: [] },
    [settled],
  );
  const submit = (event) => {
    event.preventDefault();
    const first = read.data?.items[0]?.name;
    if (text.trim()) go({ entity: first ?? text.trim(), expand: null, as_of: null });
    setText("");
  };
  return html`<div class="toolbar">
    <form class="grow" onSubmit=${submit}>
      <input
        type="search"
        aria-label="Find an entity"
        placeholder="Find an entity"
        list="entities"
        value=${text}
        onInput=${(event) => setText(event.target.value)}
      />
      <datalist id="entities">
        ${(read.data?.items ?? []).map((item) => html`<option value=${item.name}></option>`)}
      </datalist>
    </form>
    <a class="button" href=${href({ entity: null, expand: null, as_of: null })}>The user</a>
    ${children}
  </div>`;
}

// The day that is shown: a slider, and buttons to the change before and after.
function TimeSlider({ edges, asOf }) {
  const dayOf = (moment) => Math.floor(Date.parse(moment) / DAY);
  const today = Math.floor(Date.now() / DAY);
  const changes = useMemo(() => {
    const days = edges
      .flatMap(({ fact }) => [fact.valid_from ?? fact.known_from, fact.valid_to])
      .filter(Boolean)
      .map(dayOf)
      .filter((it) => it <= today);
    return [...new Set(days)].sort((a, b) => a - b);
  }, [edges]);
  const first = changes[0] ?? today;
  const write = (to) =>
    go({ as_of: to >= today ? null : new Date(to * DAY).toISOString().slice(0, 10) }, REPLACE);
  const [value, move] = useAddress(asOf ? dayOf(asOf) : today, write);
  const back = changes.findLast((it) => it < value);
  const on = changes.find((it) => it > value) ?? (value < today ? today : undefined);
  useKeys({ "[": () => back && move(back), "]": () => on && move(on) });
  const text = value >= today ? "now" : day(value * DAY);
  return html`<div class="time-slider">
    <button disabled=${!back} title="the change before ([)" onClick=${() => move(back)}>
      <span aria-hidden="true">‹</span><span class="hidden">The change before</span>
    </button>
    <input
      type="range"
      aria-label="As of"
      aria-valuetext=${text}
      min=${first}
      max=${today}
      value=${value}
      onInput=${(event) => move(Number(event.target.value))}
    />
    <button disabled=${!on} title="the change after (])" onClick=${() => move(on)}>
      <span aria-hidden="true">›</span><span class="hidden">The change after</span>
    </button>
    <output>as of ${text}</output>
  </div>`;
}

// The same for screen readers and for those who like lists.
function FactList({ edges, selected = "" }) {
  const items = edges.map(({ fact, phase }) => ({ ...fact, phase }));
  return html`<${VirtualList}
    label="Facts"
    items=${items}
    selected=${selected.replace(/^fact:/, "")}
    onOpen=${(fact) => go({ show: `fact:${fact.id}` })}
    empty=${html`<${Empty}>Nothing was true yet.<//>`}
    render=${(fact) =>
      html`<span class="grow clip">${fact.subject} <b>${fact.predicate}</b> ${fact.object}</span>
        <span class=${`state ${fact.phase === "ended" ? "over" : ""}`}
          >${fact.phase === "ended" ? `until ${day(fact.valid_to ?? fact.known_to)}` : "holds"}</span
        >
        <span class="meta">${fact.valid_from ? `since ${day(fact.valid_from)}` : ""}</span>`}
  />`;
}
