// The drawing of a graph: entities, facts as arrows with their predicates; zoom and pan by wheel,
// pointer, buttons and keys.

import { day } from "../format.js";
import { useKeys } from "../keys.js";
import { href } from "../route.js";
import { html, useMemo, useRef, useState } from "../ui.js";
import { Arrowhead, pressable, useDrag, useSize, useWheel } from "./drawing.js";

const LONGEST = innerWidth < 640 ? 14 : 26;
const CROWD = 80; // of more facts than that, predicates are shown when one comes near
const ALONG = [0.5, 0.58, 0.42, 0.66, 0.34, 0.74]; // where on its curve a predicate may stand
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);
// How large words are in the drawing, so that they stay legible and zooming in makes room for more.
const lettersAt = (scale) =>
  Math.round(10 * Math.min(1.7, Math.max(0.95 / scale, Math.min(1, 1.25 / scale)))) / 10;
const radius = (node, middle) => (middle ? 12 : node.facts > 1 ? 8 : 6);

export function Canvas({ label, nodes, edges, spots, known, selected, onOpen, onCentre }) {
  const box = useRef(null);
  const size = useSize(box);
  const [view, setView] = useState(null); // what people made of it: x, y and the scale
  const [active, setActive] = useState(nodes[0].key);
  const now = view ?? (size && fit(spots, size));
  const latest = useRef(null);
  latest.current = now;
  const zoom = (factor, x = size.width / 2, y = size.height / 2) => {
    const { x: left, y: top, scale } = latest.current;
    const next = Math.min(4, Math.max(0.2, scale * factor));
    const ratio = next / scale;
    setView({ x: x - (x - left) * ratio, y: y - (y - top) * ratio, scale: next });
  };
  const pan = (dx, dy) =>
    setView({ ...latest.current, x: latest.current.x + dx, y: latest.current.y + dy });
  useWheel(box, (event, x, y) => zoom(Math.exp(-event.deltaY / 400), x, y));
  const drag = useDrag(".node, .edge", pan);
  // What gets the focus comes into sight.
  const focus = (selector, { x, y }) => {
    const { x: left, y: top, scale } = latest.current;
    const [dx, dy] = [
      [left + x * scale, size.width],
      [top + y * scale, size.height],
    ].map(([at, room]) => (at < 0 || at > room ? room / 2 - at : 0));
    if (dx || dy) pan(dx, dy);
    box.current.querySelector(selector)?.focus();
  };
  const focusNode = (key) => {
    setActive(key);
    focus(`[data-key="${CSS.escape(key)}"]`, spots.get(key));
  };
  const walk = (step) => {
    const index = nodes.findIndex((node) => node.key === active);
    focusNode(nodes[(index + step + nodes.length) % nodes.length].key);
  };
  // With the focus in the drawing, left and right go round an entity's facts, down to a fact's
  // other end, and up back to the entity; otherwise arrows move the drawing.
  const arrow = (way, dx, dy) => () => {
    const focused = document.activeElement;
    if (!box.current.querySelector("svg")?.contains(focused)) return pan(dx, dy);
    const round = around(active, edges, spots);
    const at = round.findIndex(({ fact }) => fact.id === focused.dataset.fact);
    if (way === "back") return focusNode(active);
    if (way === "along" && at >= 0) return focusNode(round[at].other);
    const next = way === "before" ? round.at(Math.max(at, 0) - 1) : round[(at + 1) % round.length];
    if (next) focus(`[data-fact="${CSS.escape(next.fact.id)}"]`, spots.get(next.other));
  };
  useKeys({
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    0: () => setView(null),
    ArrowLeft: arrow("before", 60, 0),
    ArrowRight: arrow("after", -60, 0),
    ArrowUp: arrow("back", 0, 60),
    ArrowDown: arrow("along", 0, -60),
    j: () => walk(1),
    k: () => walk(-1),
    c: () => onCentre(nodes.find((node) => node.key === active) ?? nodes[0]),
  });
  // Zooming moves the drawing as a whole; words are placed anew where they change their size.
  const letters = now && lettersAt(now.scale);
  const drawn = useMemo(
    () =>
      html`<${Drawn}
        ...${{ nodes, edges, spots, letters, known, selected, active, setActive, onOpen }}
      />`,
    [nodes, edges, spots, letters, selected, active],
  );
  const crowded = now && now.scale < (edges.length > CROWD ? 1 : 0.55);
  return html`<div class="canvas" ref=${box}>
    ${
      now &&
      html`<svg
        role="group"
        aria-label=${label}
        width=${size.width}
        height=${size.height}
        ...${drag}
      >
        <${Arrowhead} id="arrow" />
        <g
          class=${crowded ? "far" : ""}
          style=${{ "--letters": letters }}
          transform=${`translate(${now.x} ${now.y}) scale(${now.scale})`}
        >
          ${drawn}
        </g>
      </svg>`
    }
    <div class="zoom" role="group" aria-label="Zoom">
      <button aria-label="Zoom in" title="zoom in (+)" onClick=${() => zoom(1.25)}>+</button>
      <button aria-label="Zoom out" title="zoom out (-)" onClick=${() => zoom(0.8)}>−</button>
      <button aria-label="Fit" title="show everything (0)" onClick=${() => setView(null)}>⤢</button>
    </div>
    <p class="graph-legend meta">
      <span><i class="line"></i>holds</span><span><i class="line ended"></i>ended</span>
      <span class="keys"
        ><kbd>j</kbd> <kbd>k</kbd> entities, <kbd>←</kbd> <kbd>→</kbd> its facts,
        <kbd>↓</kbd> along, <kbd>Enter</kbd> open, <kbd>c</kbd> centre</span
      >
    </p>
  </div>`;
}

function Drawn({ nodes, edges, spots, letters, known, selected, active, setActive, onOpen }) {
  const byKey = new Map(nodes.map((node, i) => [node.key, { ...node, r: radius(node, i === 0) }]));
  const take = room(byKey, spots, letters);
  const names = named(byKey, spots, letters, take);
  const curves = lettered(fanned(edges), spots, byKey, letters, take);
  return html`${curves.map((edge) => html`<${Edge} key=${edge.fact.id} ...${edge} selected=${selected} />`)}
  ${nodes.map(
    (node, i) =>
      html`<${Node}
        key=${node.key}
        node=${node}
        at=${spots.get(node.key)}
        r=${byKey.get(node.key).r}
        name=${names.get(node.key)}
        middle=${i === 0}
        known=${known.has(node.name.trim().toLowerCase())}
        active=${node.key === active}
        onFocus=${() => setActive(node.key)}
        onOpen=${() => onOpen(node)}
      />`,
  )}`;
}

function Node({ node, at, r, name, middle, known, active, onFocus, onOpen }) {
  const what = middle ? "in the middle" : known ? "centre on it" : "expand it";
  return html`<g
    class=${`node ${middle ? "middle" : ""} ${known ? "known" : ""}`}
    transform=${`translate(${at.x} ${at.y})`}
    tabindex=${active ? 0 : -1}
    data-key=${node.key}
    aria-label=${`${node.label}: ${what}`}
    onFocus=${onFocus}
    ...${pressable(onOpen)}
  >
    <title>${node.label}</title>
    <circle class="halo" r=${r + 6} />
    <circle r=${r} />
    <text class=${name.free ? "" : "covered"} x=${name.x - at.x} y=${name.y - at.y}
      >${cut(node.label)}</text
    >
  </g>`;
}

function Edge({ fact, phase, path, letters, selected }) {
  const end = fact.valid_to ?? fact.known_to;
  const said = `${fact.subject} ${fact.predicate} ${fact.object}`;
  const until = phase === "ended" ? `, until ${day(end)}` : "";
  return html`<a
    class=${`edge ${phase} ${selected === `fact:${fact.id}` ? "picked" : ""}`}
    href=${href({ show: `fact:${fact.id}` })}
    tabindex="-1"
    data-fact=${fact.id}
    aria-label=${said + until}
  >
    <title>${said + until}</title>
    <path class="reach" d=${path} />
    <path class="line" d=${path} marker-end="url(#arrow)" />
    <text class=${letters.free ? "" : "covered"} x=${letters.x} y=${letters.y}
      >${fact.predicate}</text
    >
  </a>`;
}

// The curve of a fact, without its ends, which are under the entities.
function curve({ from, to, bend }, spots, nodes) {
  const [a, b] = [spots.get(from), spots.get(to)];
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  const start = { x: a.x + ux * nodes.get(from).r, y: a.y + uy * nodes.get(from).r };
  const stop = { x: b.x - ux * (nodes.get(to).r + 2), y: b.y - uy * (nodes.get(to).r + 2) };
  const middle = { x: (a.x + b.x) / 2 - uy * bend, y: (a.y + b.y) / 2 + ux * bend };
  const path = `M${start.x} ${start.y}Q${middle.x} ${middle.y} ${stop.x} ${stop.y}`;
  const point = (t, axis) =>
    (1 - t) ** 2 * start[axis] + 2 * t * (1 - t) * middle[axis] + t ** 2 * stop[axis];
  return { path, at: (t) => ({ x: point(t, "x"), y: point(t, "y") }) };
}

// Words have room where neither an entity nor another word is. What is returned takes the first of
// several places that is free; words without one are shown when one comes near, or zooms in.
function room(nodes, spots, letters) {
  const taken = [...nodes.values()].map(({ key, r }) => ({ ...spots.get(key), half: r, tall: r }));
  const tall = 6.5 * letters;
  return (places, half) => {
    const isFree = ({ x, y }) =>
      taken.every(
        (it) => Math.abs(it.x - x) > it.half + half || Math.abs(it.y - y) > it.tall + tall,
      );
    const free = places.find(isFree);
    if (free) taken.push({ ...free, half, tall });
    return { ...(free ?? places[0]), free: Boolean(free) };
  };
}

// The place of each name: on the outer side of its entity, on the inner one, or beside it, the
// middle first. Those with the most facts choose first.
function named(nodes, spots, letters, take) {
  const order = [...nodes.values()].sort((a, b) => b.r - a.r || b.facts - a.facts);
  const place = ({ key, label, r }) => {
    const { x, y } = spots.get(key);
    const half = cut(label).length * 3.3 * letters;
    const [up, down] = [-r - 3 - 7 * letters, r + 3 + 7 * letters].map((dy) => ({ x, y: y + dy }));
    const beside = [-1, 1].map((way) => ({ x: x + way * (x < 0 ? -1 : 1) * (r + 4 + half), y }));
    return take([...(y < -1 ? [up, down] : [down, up]), ...beside], half);
  };
  return new Map(order.map((node) => [node.key, place(node)]));
}

// Each fact with its curve and the place of its predicate, near the middle of it.
function lettered(edges, spots, nodes, letters, take) {
  return edges
    .filter(({ from, to }) => from !== to)
    .map((edge) => {
      const { path, at } = curve(edge, spots, nodes);
      const half = edge.fact.predicate.length * 2.9 * letters;
      return { ...edge, path, letters: take(ALONG.map(at), half) };
    });
}

// The facts of an entity clockwise, each with its other end.
function around(key, edges, spots) {
  const centre = spots.get(key);
  const own = edges
    .filter(({ from, to }) => from !== to && (from === key || to === key))
    .map((edge) => ({ ...edge, other: edge.from === key ? edge.to : edge.from }));
  const angle = ({ other }) =>
    Math.atan2(spots.get(other).y - centre.y, spots.get(other).x - centre.x);
  return own.sort((a, b) => angle(a) - angle(b));
}

// Facts between the same two, side by side.
function fanned(edges) {
  const groups = Map.groupBy(edges, ({ from, to }) => [from, to].sort().join("\n"));
  return [...groups.values()].flatMap((group) =>
    group.map((edge, i) => {
      const side = (i - (group.length - 1) / 2) * 44;
      return { ...edge, bend: edge.from < edge.to ? side : -side };
    }),
  );
}

// The scale and the place at which everything is seen, as far as it stays legible.
function fit(spots, { width, height }) {
  const all = [...spots.values()];
  const [left, right] = [
    Math.min(...all.map((p) => p.x)) - 90,
    Math.max(...all.map((p) => p.x)) + 90,
  ];
  const [top, bottom] = [
    Math.min(...all.map((p) => p.y)) - 30,
    Math.max(...all.map((p) => p.y)) + 56,
  ];
  const whole = Math.min(width / (right - left), height / (bottom - top), 1.25);
  if (whole < 0.6) return { x: width / 2, y: height / 2, scale: 0.8 }; // the middle first
  return {
    x: width / 2 - (whole * (left + right)) / 2,
    y: height / 2 - (whole * (top + bottom)) / 2,
    scale: whole,
  };
}
