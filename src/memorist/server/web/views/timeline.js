// Timeline: sessions as bands, memories as marks on them, updates as arcs from old to new.

import { api } from "../api.js";
import { day as dayOf, exactTime, plural } from "../format.js";
import { useKeys } from "../keys.js";
import { go } from "../route.js";
import {
  Empty,
  Kind,
  Loaded,
  html,
  useAddress,
  useLayoutEffect,
  useMemo,
  useNews,
  useRead,
  useRef,
  useState,
} from "../ui.js";
import { Arrowhead, pressable, useDrag, useSize, useWheel } from "./drawing.js";
import { LANE, arrange, ticks } from "./timeline-layout.js";

const HOUR = 3_600_000;
const SPANS = [
  ["Year", 8_766 * HOUR],
  ["Month", 730.5 * HOUR],
  ["Week", 168 * HOUR],
  ["Day", 24 * HOUR],
  ["Hour", HOUR],
];
const LONGEST = 40 * SPANS[0][1];
const PAGES = 5; // of 200 memories that are read for a range
const KINDS = ["fact", "concept", "episode", "procedure", "working"];

export default function Timeline({ route }) {
  const { agent, from, to, show = "" } = route.query;
  const whole = useRead((signal) => extent(agent, signal), [agent]);
  return html`<div class="pane">
    <${Loaded} read=${whole}
      >${(all) =>
        all
          ? html`<${Band}
              all=${all}
              agent=${agent}
              given=${given(from, to) ?? all}
              shown=${show.replace(/^memory:/, "")}
            />`
          : html`<${Empty} command='memorist remember "I live in Berlin"'
              >Nothing has happened yet: the first memory begins the timeline.<//
            >`}<//
    >
  </div>`;
}

// The range that an address names, if it is one.
function given(from, to) {
  const range = { from: Date.parse(from), to: Date.parse(to) };
  return range.from < range.to ? range : null;
}

// From the oldest memory until now, or the newest one, with some room; null where there is none.
async function extent(agent, signal) {
  const read = (newest_first) =>
    api.get("memories", { agent, state: "all", limit: 1, newest_first }, { signal });
  const [[oldest], [newest]] = (await Promise.all([read(false), read(true)])).map((it) => it.items);
  if (!oldest) return null;
  const from = Date.parse(oldest.created_at);
  const to = Math.max(Date.now(), Date.parse(newest.created_at)); // clocks differ
  const room = Math.max((to - from) / 20, HOUR / 2);
  return { from: from - room, to: to + room };
}

// Memories and sessions of a range, page by page by key; the newest where there are too many.
async function readRange({ after, before, agent }, signal) {
  const range = { after: new Date(after).toISOString(), before: new Date(before).toISOString() };
  const query = { agent, state: "all", newest_first: true, limit: 200, ...range };
  const sessionsOf = { agent, newest_first: true, summary: true, limit: 100 };
  const old = (session) => Date.parse(session.last_active_at) < after;
  const [memories, sessions] = await Promise.all([
    readPages("memories", query, signal),
    readPages("sessions", sessionsOf, signal, old),
  ]);
  return { memories: memories.items, sessions: sessions.items, more: memories.more };
}

async function readPages(path, query, signal, enough = () => false) {
  const items = [];
  let cursor;
  for (let page = 0; page < PAGES; page++) {
    const { items: some, next } = await api.get(path, { ...query, cursor }, { signal });
    items.push(...some);
    cursor = next;
    if (!next || enough(some.at(-1))) return { items, more: false };
  }
  return { items, more: true };
}

function Band({ all, agent, given, shown }) {
  const iso = (time) => new Date(time).toISOString().slice(0, 19) + "Z";
  const write = (it) => go({ from: iso(it.from), to: iso(it.to) }, { replace: true });
  const [range, setRange] = useAddress(given, write);
  const box = useRef(null);
  const width = useSize(box)?.width;
  const [active, setActive] = useState(null);
  // What is read is a wider range on a grid, so that small moves read nothing.
  const grid = 2 ** Math.ceil(Math.log2(range.to - range.from));
  const after = Math.floor(range.from / grid) * grid;
  const before = Math.ceil(range.to / grid) * grid;
  const news = useNews("memory");
  const read = useRead(
    (signal) => readRange({ after, before, agent }, signal),
    [after, before, news],
  );
  const zoom = (factor, share = 0.5) => {
    const span = Math.min(LONGEST, Math.max(HOUR, (range.to - range.from) * factor));
    const point = range.from + (range.to - range.from) * share;
    setRange({ from: point - span * share, to: point + span * (1 - share) });
  };
  const pan = (share) => {
    const by = (range.to - range.from) * share;
    setRange({ from: range.from + by, to: range.to + by });
  };
  const around = (time, span) => setRange({ from: time - span / 2, to: time + span / 2 });
  const data = read.data ?? { memories: [], sessions: [], more: false };
  const drawn = useMemo(
    () => width && arrange(data, range, width),
    [data, range.from, range.to, width],
  );
  const marks = drawn ? drawn.marks.toSorted((a, b) => a.time - b.time) : [];
  const move = (step) => {
    const index = marks.findIndex((mark) => mark.memory.id === active);
    const next = marks[index < 0 ? (step > 0 ? 0 : marks.length - 1) : index + step];
    if (!next) return;
    setActive(next.memory.id);
    if (next.time < range.from || next.time > range.to) around(next.time, range.to - range.from);
  };
  useLayoutEffect(() => {
    if (active) box.current?.querySelector(`[data-id="${active}"]`)?.focus();
  }, [active, drawn]);
  const middle = () =>
    marks.find((mark) => mark.memory.id === active)?.time ?? (range.from + range.to) / 2;
  useKeys({
    "+": () => zoom(0.6),
    "=": () => zoom(0.6),
    "-": () => zoom(1.6),
    0: () => setRange(all),
    ArrowLeft: () => pan(-0.2),
    ArrowRight: () => pan(0.2),
    j: () => move(1),
    k: () => move(-1),
  });
  useWheel(box, ({ deltaX, deltaY }, x) => {
    if (Math.abs(deltaX) > Math.abs(deltaY)) pan(deltaX / width);
    else zoom(Math.exp(deltaY / 400), x / width);
  });
  const drag = useDrag(".mark, .band", (dx) => pan(-dx / width));
  const moment = range.to - range.from < SPANS[2][1] ? exactTime : dayOf;
  const inside = marks.filter((mark) => mark.time >= range.from && mark.time <= range.to).length;
  const memories = plural(inside, "memory", "memories");
  const said = `${moment(range.from)} to ${moment(range.to)}: ${memories}${data.more ? ", the newest of more: zoom in" : ""}`;
  return html`<div class="toolbar">
      <div role="group" aria-label="Range" class="spans">
        <button onClick=${() => setRange(all)} title="everything (0)">All</button>
        ${SPANS.map(
          ([name, span]) =>
            html`<button
              aria-pressed=${Math.abs(range.to - range.from - span) < span / 50}
              onClick=${() => around(middle(), span)}
            >
              ${name}
            </button>`,
        )}
      </div>
      <span class="grow meta range-text" aria-live="polite">${said}</span>
      <div class="spans">
        <button aria-label="Earlier" title="earlier (←)" onClick=${() => pan(-0.5)}>‹</button>
        <button aria-label="Later" title="later (→)" onClick=${() => pan(0.5)}>›</button>
        <button aria-label="Zoom in" title="zoom in (+)" onClick=${() => zoom(0.6)}>+</button>
        <button aria-label="Zoom out" title="zoom out (-)" onClick=${() => zoom(1.6)}>−</button>
      </div>
    </div>
    <div class="timeline" ref=${box} ...${drag}>
      <${Loaded} read=${read}
        >${() =>
          drawn &&
          html`<${Drawing}
            drawn=${drawn}
            range=${range}
            width=${width}
            active=${active ?? marks[0]?.memory.id}
            shown=${shown}
            onActive=${setActive}
            onBand=${setRange}
          />`}<//
      >
    </div>
    <p class="remark meta legend-row">
      ${KINDS.map((kind) => html`<${Kind} kind=${kind} />`)}
      <span>hollow: over</span> <span>arrow: updated by</span>
      <span class="keys"
        ><kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> open, <kbd>+</kbd> <kbd>-</kbd> zoom</span
      >
    </p>`;
}

function Drawing({ drawn, range, width, active, shown, onActive, onBand }) {
  const height = Math.max(drawn.lanes * LANE + 36, 120);
  return html`<svg class="axis" width=${width} height="32" aria-hidden="true">
      ${ticks(range, width).map(
        ({ x, text }) =>
          html`<g transform=${`translate(${x} 0)`}>
            <line y1="24" y2="32" />
            <text x="4" y="16">${text}</text>
          </g>`,
      )}
    </svg>
    <div class="lanes">
      <svg role="group" aria-label="Sessions and memories" width=${width} height=${height}>
        <${Arrowhead} id="tip" />
        ${ticks(range, width).map(({ x }) => html`<line class="grid" x1=${x} x2=${x} y2="100%" />`)}
        ${drawn.bands.map((band) => html`<${Session} key=${band.id} band=${band} onOpen=${() => onBand(band.range)} />`)}
        ${drawn.arcs.map(
          ({ path, text }) =>
            html`<path class="arc" d=${path} marker-end="url(#tip)"><title>${text}</title></path>`,
        )}
        ${drawn.marks.map(
          (mark) =>
            html`<${Mark}
              key=${mark.memory.id}
              mark=${mark}
              tab=${mark.memory.id === active}
              picked=${mark.memory.id === shown}
              onFocus=${() => onActive(mark.memory.id)}
            />`,
        )}
      </svg>
    </div>`;
}

function Session({ band, onOpen }) {
  return html`<g class="band" transform=${`translate(${band.x} ${band.y})`} onClick=${onOpen}>
    <title>${band.title}: zoom to it</title>
    <rect width=${band.width} height="20" rx="4" />
    <text y="34" x=${band.labelX}>${band.label}</text>
    ${band.rest > 0 && html`<text class="rest" x=${band.width + 4} y="14">+${band.rest}</text>`}
  </g>`;
}

const SHAPES = {
  fact: "M-4-4h8v8h-8z",
  concept: "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
  episode: "M0-5.5L5.5 0L0 5.5L-5.5 0z",
  procedure: "M-4.5-4.5h5a4 4 0 0 1 4 4v5h-5a4 4 0 0 1-4-4z",
  working: "M-3.5-3.5h7v7h-7z",
};

function Mark({ mark, tab, picked, onFocus }) {
  const { memory, x, y } = mark;
  const open = () => go({ show: `memory:${memory.id}` });
  const over = memory.ended_at ? `, over since ${exactTime(memory.ended_at)}` : "";
  const text = `${memory.kind}: ${memory.text}, ${exactTime(memory.created_at)}${over}`;
  return html`<g
    class=${`mark mark-${memory.kind} ${over ? "ended" : ""} ${picked ? "picked" : ""}`}
    transform=${`translate(${x} ${y})`}
    tabindex=${tab ? 0 : -1}
    data-id=${memory.id}
    aria-label=${text}
    onFocus=${onFocus}
    ...${pressable(open)}
  >
    <title>${text}</title>
    <circle class="halo" r="9" />
    <path d=${SHAPES[memory.kind] ?? SHAPES.fact} />
  </g>`;
}
