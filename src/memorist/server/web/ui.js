// What every view is made of: reading from the API, lists, badges, bars, dialogs, messages.

import { ApiError, api, onChange } from "./api.js";
import { ago, exactTime } from "./format.js";
import { useKeys } from "./keys.js";
import { readRoute } from "./route.js";
import {
  createContext,
  html,
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "./vendor/preact-htm.js";

export { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };

// Reading

// `read(signal)` whenever `deps` change; late answers to earlier ones are dropped. What was read
// before stays in `data` while the next is on its way; `slow` is true after 200 ms.
export function useRead(read, deps) {
  const [state, setState] = useState({ data: undefined, error: null, slow: false });
  const [round, setRound] = useState(0);
  // At once: after the next frame, an answer to the earlier read could still come in between.
  useLayoutEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => setState((old) => ({ ...old, slow: true })), 200);
    const finish = (changes) => {
      clearTimeout(timer);
      if (!stop.signal.aborted)
        setState((old) => ({ ...old, error: null, ...changes, slow: false }));
    };
    Promise.resolve()
      .then(() => read(stop.signal))
      .then(
        (data) => finish({ data }),
        (error) => finish({ error, data: undefined }),
      );
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [...deps, round]);
  return { ...state, reload: useCallback(() => setRound((n) => n + 1), []) };
}

// A list that comes in pages: `{items, done, error, slow, more(), reload()}`.
export function usePages(path, query, { size = 50 } = {}) {
  const key = JSON.stringify([path, query]);
  const [pages, setPages] = useState({ key, items: [], next: undefined });
  const first = useRead(
    async (signal) => ({ key, ...(await api.get(path, { ...query, limit: size }, { signal })) }),
    [key],
  );
  useLayoutEffect(() => {
    if (first.data) setPages(first.data);
  }, [first.data]);
  const busy = useRef(false);
  const more = async () => {
    const { next } = pages;
    if (busy.current || !next || pages.key !== key) return;
    busy.current = true;
    try {
      const page = await api.get(path, { ...query, limit: size, cursor: next });
      // Unless the list was read anew meanwhile, and this is not what follows.
      setPages((old) =>
        old.key === key && old.next === next
          ? { key, items: [...old.items, ...page.items], next: page.next }
          : old,
      );
    } catch (error) {
      say(error.message);
      setTimeout(() => setPages((old) => ({ ...old })), 2_000); // a list at its end asks again
    } finally {
      busy.current = false;
    }
  };
  const patch = (change) => setPages((old) => ({ ...old, items: change(old.items) }));
  const stale = pages.key !== key;
  return {
    key: pages.key, // of what is in `items`: an earlier query's, while the next is on its way
    items: pages.items,
    done: !stale && pages.next === null,
    error: first.error,
    slow: first.slow,
    ready: !stale && pages.next !== undefined,
    more,
    reload: first.reload,
    patch,
  };
}

// What somebody types, after they stopped for 120 ms.
export function useTyped(value, wait = 120) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), wait);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

// What moves faster than an address may change (a slider, a zoom): `[value, setValue]`. It goes
// into the address with `write` once it rests.
export function useAddress(value, write) {
  const [own, setOwn] = useState(null);
  useEffect(() => {
    if (own === null) return undefined;
    const timer = setTimeout(() => {
      write(own);
      setOwn((latest) => (latest === own ? null : latest));
    }, 150);
    return () => clearTimeout(timer);
  }, [own]);
  return [own ?? value, setOwn];
}

// Calls `listener` at changes of the memory (event is message, memory, fact or job).
export function useChanges(listener) {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => onChange((event) => latest.current(event)), []);
}

// A number that grows a second after changes of one kind: what depends on it is read again.
export function useNews(kind) {
  const [news, setNews] = useState(0);
  useChanges(({ event }) => event === kind && setNews((count) => count + 1));
  return useTyped(news, 1_000);
}

// States

export function Problem({ error, retry }) {
  const text = error instanceof ApiError ? error.message : "Something in this page failed.";
  return html`<div class="problem" role="alert">
    <p>${text}</p>
    ${error.problem?.request_id && html`<p class="meta">request <code>${error.problem.request_id}</code></p>`}
    ${retry && html`<button onClick=${retry}>Try again</button>`}
  </div>`;
}

export const Skeleton = ({ rows = 6 }) =>
  html`<div class="skeleton" role="progressbar" aria-label="Loading">
    ${Array.from({ length: rows }, () => html`<div></div>`)}
  </div>`;

// Who is calling, as the server says.
export const Caller = createContext({});

const inShell = (word) => (/^[\w.@:/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

// An empty page teaches: one sentence and a command to copy, which reaches this server's memory.
export function Empty({ children, command, agent }) {
  const caller = useContext(Caller);
  const user = readRoute().query.user ?? caller.user; // an admin's key has none
  const options = { agent, user: user === "me" ? null : user, db: location.origin };
  const given = Object.entries(options).filter(([, value]) => value);
  const words = given.map(([name, value]) => ` --${name} ${inShell(value)}`);
  return html`<div class="empty">
    <p>${children}</p>
    ${command && html`<${Copyable} text=${command + words.join("")} />`}
  </div>`;
}

export function Copyable({ text, label = "Copy" }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return html`<span class="copyable">
    <code tabindex="0">${text}</code>
    <button class="quiet" onClick=${copy}>${copied ? "Copied" : label}</button>
  </span>`;
}

// What a read gives, or its skeleton, or its error.
export function Loaded({ read, rows, children }) {
  if (read.error) return html`<${Problem} error=${read.error} retry=${read.reload} />`;
  if (read.data === undefined) return read.slow ? html`<${Skeleton} rows=${rows} />` : null;
  return children(read.data);
}

// Small parts

export const Time = ({ at }) =>
  at ? html`<time datetime=${at} title=${exactTime(at)}>${ago(at)}</time>` : null;

export const Kind = ({ kind }) =>
  html`<span class=${`kind kind-${kind}`}><i aria-hidden="true"></i>${kind}</span>`;

// When an item ceased to hold: a memory ended; a fact was true until then, or was taken back.
const endOf = (item) =>
  item.predicate === undefined ? item.ended_at : (item.known_to ?? item.valid_to);

// Only what is true until a moment may end later; the clocks of servers and browsers differ.
export const isOver = (item) =>
  Boolean(
    item.gone ||
    item.known_to ||
    (item.predicate === undefined && item.ended_at) ||
    (item.valid_to && new Date(item.valid_to) <= new Date()),
  );

// current, superseded, retracted, expired or forgotten, with when that was.
export function State({ item }) {
  if (item.gone) return html`<span class="state over">forgotten</span>`;
  if (!isOver(item)) return html`<span class="state">current</span>`;
  const end = endOf(item);
  return html`<span class="state over" title=${exactTime(end)}>${ending(item)} ${ago(end)}</span>`;
}

// What took its place; a memory that says it is over has not.
export const heirOf = (item) => (item.reason === "said to be over" ? null : item.superseded_by);

function ending(item) {
  if (item.reason === "undone") return "undone";
  if (heirOf(item)) return item.reason === "corrected" ? "corrected" : "superseded";
  if (item.expires_at && item.expires_at <= item.ended_at) return "expired";
  return item.known_to || item.predicate === undefined ? "retracted" : "over";
}

// The parts of a text that match words, marked.
export function Marked({ text, words }) {
  const wanted = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!wanted.length) return text;
  const pieces = text.split(new RegExp(`(${wanted.join("|")})`, "giu"));
  return pieces.map((piece, i) => (i % 2 ? html`<mark>${piece}</mark>` : piece));
}

// A horizontal bar in segments: `parts` is [{name, value, label}], `total` the whole width.
export function Bar({ parts, total, label, onPick, onHover, picked }) {
  return html`<div class="bar" role="group" aria-label=${label}>
    ${parts
      .filter((part) => part.value > 0)
      .map((part) => {
        const style = { width: `${(100 * part.value) / total}%` };
        const name = `${part.name}: ${part.label ?? part.value}`;
        const css = `segment segment-${part.slot ?? part.name} ${picked === part.name ? "picked" : ""}`;
        return onPick
          ? html`<button
              class=${css}
              style=${style}
              title=${name}
              aria-label=${name}
              aria-pressed=${picked === part.name}
              onClick=${() => onPick(part.name)}
              onMouseEnter=${() => onHover?.(part.name)}
              onFocus=${() => onHover?.(part.name)}
            ></button>`
          : html`<span class=${css} style=${style} title=${name}></span>`;
      })}
  </div>`;
}

// A list of which only the rows in sight exist. `render(item)` gives a row's content; rows have
// one height. j and k move, Enter opens. `selected` is the id of the open row.
export function VirtualList({
  items,
  height = 44,
  render,
  onOpen,
  onMore,
  selected,
  label,
  empty,
  keys = {},
}) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [room, setRoom] = useState(800);
  const [active, setActive] = useState(() =>
    Math.max(
      0,
      items.findIndex((item) => item.id === selected),
    ),
  );
  useLayoutEffect(() => {
    if (active) move(active);
    const observer = new ResizeObserver(([entry]) => setRoom(entry.contentRect.height));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / height) - 8);
  const last = Math.min(items.length, Math.ceil((top + room) / height) + 8);
  useEffect(() => {
    if (last >= items.length - 20) onMore?.();
  });
  const move = (index) => {
    const next = Math.max(0, Math.min(items.length - 1, index));
    setActive(next);
    const el = box.current;
    if (next * height < el.scrollTop) el.scrollTop = next * height;
    if ((next + 1) * height > el.scrollTop + room) el.scrollTop = (next + 1) * height - room;
  };
  const open = () => items[active] && onOpen?.(items[active]);
  const bound = Object.fromEntries(
    Object.entries(keys).map(([key, act]) => [key, () => items[active] && act(items[active])]),
  );
  useKeys({ j: () => move(active + 1), k: () => move(active - 1), Enter: open, ...bound });
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (!step) return;
    event.preventDefault();
    move(active + step);
  };
  return html`<div
    class="list"
    role="listbox"
    tabindex="0"
    aria-label=${label}
    ref=${box}
    aria-activedescendant=${items[active] ? `row-${items[active].id}` : undefined}
    onKeyDown=${onKeyDown}
    onScroll=${(event) => setTop(event.target.scrollTop)}
  >
    <div class="rows" style=${{ height: `${items.length * height}px` }}>
      ${items.slice(first, last).map((item, i) => {
        const index = first + i;
        const css = `row ${index === active ? "active" : ""} ${isOver(item) ? "over" : ""}`;
        return html`<div
          key=${item.id}
          id=${`row-${item.id}`}
          class=${css}
          role="option"
          aria-selected=${item.id === selected}
          style=${{ transform: `translateY(${index * height}px)`, height: `${height}px` }}
          onClick=${() => {
            setActive(index);
            onOpen?.(item);
          }}
        >
          ${render(item)}
        </div>`;
      })}
    </div>
    ${!items.length && empty}
  </div>`;
}

// A modal dialog; the browser keeps the focus inside and gives it back.
export function Dialog({ title, onClose, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog
    ref=${dialog}
    aria-label=${title}
    onClose=${onClose}
    onClick=${(event) => event.target === dialog.current && dialog.current.close()}
  >
    <header>
      <h2>${title}</h2>
      <button class="quiet" aria-label="Close" onClick=${() => dialog.current.close()}>✕</button>
    </header>
    ${children}
  </dialog>`;
}

// A short message at the foot of the page: `say("Forgotten")`, `say("Changed", {undo: …})`.
export const say = (text, { undo } = {}) =>
  dispatchEvent(new CustomEvent("memorist-say", { detail: { text, undo } }));

export function Messages() {
  const [message, setMessage] = useState(null);
  useEffect(() => {
    let timer;
    const show = ({ detail }) => {
      clearTimeout(timer);
      setMessage(detail);
      timer = setTimeout(() => setMessage(null), 8_000);
    };
    addEventListener("memorist-say", show);
    return () => removeEventListener("memorist-say", show);
  }, []);
  const undo = async () => {
    setMessage(null);
    await message.undo();
  };
  return html`<div class="messages" role="status" aria-live="polite">
    ${
      message &&
      html`<div class="message">
        ${message.text} ${message.undo && html`<${UndoKey} undo=${undo} />`}
        ${message.undo && html`<button class="quiet" onClick=${undo}>Undo</button>`}
        <button class="quiet" aria-label="Dismiss" onClick=${() => setMessage(null)}>✕</button>
      </div>`
    }
  </div>`;
}

// While the message stands, `u` is its undo, whatever else listens to it.
function UndoKey({ undo }) {
  useKeys({ u: undo });
  return null;
}

// Runs an action of a button; an error is said at the foot of the page.
export const attempt =
  (action) =>
  async (...args) => {
    try {
      return await action(...args);
    } catch (error) {
      say(error.message);
    }
  };
