// The frame: the rail, the top bar, the view that the address names, the inspector.

import { api, forgetKey, setKey, storage } from "./api.js";
import { Inspector } from "./inspector.js";
import { SHORTCUTS, useKeys } from "./keys.js";
import { go, href, useRoute } from "./route.js";
import { Search } from "./search.js";
import {
  Caller,
  Dialog,
  Messages,
  Problem,
  Skeleton,
  html,
  useEffect,
  useLayoutEffect,
  useRead,
  useRef,
  useState,
} from "./ui.js";
import { render } from "./vendor/preact-htm.js";

// The places of the rail, by the letter that goes there; each view is read when it is first shown.
const PLACES = [
  ["chat", "Chat", "M2 3h12v8H6l-3 2.5V11H2z"],
  ["memories", "Memories", "M3 3.5h10M3 8h10M3 12.5h10"],
  ["recall", "Recall", "M11 11l3 3M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10z"],
  [
    "graph",
    "Graph",
    "M4 5.5A1.5 1.5 0 1 0 4 2.5a1.5 1.5 0 0 0 0 3zM12 7a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM6.5 14a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM5.3 4.4l5.3 1M4.5 5.5l1.6 5.6M11 6.8l-3.5 4.6",
  ],
  ["timeline", "Timeline", "M2 8h12M5 5v6M9 3v5M12 8v4"],
  ["notes", "Notes", "M3 2h7l3 3v9H3zM6 7h4M6 10h4"],
  [
    "articles",
    "Articles",
    "M8 4C6.5 3 4.5 2.7 2 3v9.5c2.5-.3 4.5 0 6 1 1.5-1 3.5-1.3 6-1V3c-2.5-.3-4.5 0-6 1zM8 4v9.5",
  ],
  ["health", "Health", "M1.5 8.5h3l2-5 3 9 2-4h3"],
];
const LETTERS = Object.fromEntries(PLACES.map(([view]) => [view[0], view]));

const Icon = ({ path }) =>
  html`<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d=${path} /></svg>`;

function Rail({ view }) {
  return html`<nav class="rail" aria-label="Places">
    ${PLACES.map(
      ([name, label, path]) =>
        html`<a
          href=${href({ view: name })}
          aria-current=${view === name ? "page" : undefined}
          title=${`${label} (g ${name[0]})`}
        >
          <${Icon} path=${path} /><span>${label}</span></a
        >`,
    )}
  </nav>`;
}

function TopBar({ me, route, search }) {
  return html`<header class="top">
    <a class="brand" href=${href({ view: "chat" })}
      ><img src="/web/icon.svg" alt="" width="20" height="20" />Memorist</a
    >
    <${Whose} me=${me} route=${route} />
    <${Search} input=${search} user=${route.query.user ?? me.user} agent=${route.query.agent} />
    <${Theme} />
  </header>`;
}

// Whose memory: the user (for an admin to choose) and the agent.
function Whose({ me, route }) {
  const users = useRead(
    (signal) =>
      me.admin ? api.get("users", { user: null, limit: 200 }, { signal }) : { items: [] },
    [me],
  );
  const agents = useRead(
    (signal) => (me.user || route.query.user ? api.get("agents", {}, { signal }) : { items: [] }),
    [me, route.query.user],
  );
  const pick = (name) => (event) => go({ [name]: event.target.value, show: null });
  const names = users.data?.items.map((it) => it.user) ?? [];
  const agentNames = new Set([...(agents.data?.items ?? []), route.query.agent].filter(Boolean));
  return html`<div class="whose">
    ${
      me.admin
        ? html`<select aria-label="User" value=${route.query.user ?? ""} onChange=${pick("user")}>
            <option value="">choose a user</option>
            ${names.map((name) => html`<option value=${name}>${name}</option>`)}
          </select>`
        : html`<span title="whose memory this is">${me.user}</span>`
    }
    <select aria-label="Agent" value=${route.query.agent ?? ""} onChange=${pick("agent")}>
      <option value="">every agent</option>
      ${[...agentNames].map((name) => html`<option value=${name}>${name}</option>`)}
    </select>
  </div>`;
}

const kept = storage("localStorage");

function Theme() {
  const [theme, setTheme] = useState(() => kept.getItem("memorist-theme") ?? "auto");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    kept.setItem("memorist-theme", theme);
  }, [theme]);
  const next = { auto: "light", light: "dark", dark: "auto" }[theme];
  return html`<button
    class="quiet"
    title=${`theme: ${theme}`}
    aria-label=${`Theme: ${theme}; change to ${next}`}
    onClick=${() => setTheme(next)}
  >
    ${{ auto: "◐", light: "○", dark: "●" }[theme]}
  </button>`;
}

// The module of a view, loaded when it is first shown.
function View({ route, me }) {
  const known = PLACES.some(([name]) => name === route.view) || route.view === "context";
  const name = known ? route.view : "chat";
  const read = useRead(
    async () => ({ name, view: (await import(`./views/${name}.js`)).default }),
    [name],
  );
  const Shown = read.data?.name === name ? read.data.view : undefined;
  if (read.error) return html`<${Problem} error=${read.error} retry=${read.reload} />`;
  if (!Shown) return read.slow ? html`<${Skeleton} />` : null;
  if (me.admin && !route.query.user && !["health"].includes(route.view))
    return html`<div class="empty">
      <p>An admin's key opens every user's memory: choose a user above.</p>
    </div>`;
  return html`<${Shown}
    key=${`${route.query.user} ${route.query.agent}`}
    route=${route}
    me=${me}
  />`;
}

function SignIn({ onDone }) {
  const [error, setError] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    setKey(new FormData(event.target).get("key").trim());
    try {
      onDone(await api.get("me", { user: null }));
    } catch (failure) {
      forgetKey();
      setError(failure);
    }
  };
  return html`<main class="sign-in">
    <form onSubmit=${submit}>
      <h1>Memorist</h1>
      <label
        >API key<input
          name="key"
          type="password"
          autocomplete="off"
          pattern="\\s*[!-~]+\\s*"
          title="as memorist keys create wrote it"
          required
          autofocus
      /></label>
      <button class="primary">Open</button>
      <p class="meta">
        It stays in this tab. An operator makes one with <code>memorist keys create</code>.
      </p>
      ${error && html`<p role="alert" class="problem">${error.message}</p>`}
    </form>
  </main>`;
}

function Help({ onClose }) {
  return html`<${Dialog} title="Keyboard" onClose=${onClose}
    ><dl class="shortcuts">
      ${SHORTCUTS.map(
        ([keys, meaning]) =>
          html`<dt><kbd>${keys}</kbd></dt>
            <dd>${meaning}</dd>`,
      )}
    </dl><//
  >`;
}

const SOON_MS = 3_000;

function Frame({ me }) {
  const route = useRoute();
  const search = useRef(null);
  const [help, setHelp] = useState(false);
  const left = useRef(-Infinity); // when `g` was last pressed
  // Soon after `g`, a letter goes to a place; otherwise letters are the view's own.
  useEffect(() => {
    const listen = (event) => {
      if (event.timeStamp - left.current > SOON_MS) return;
      if (event.target.closest?.("input, textarea, select")) return;
      left.current = -Infinity;
      if (!LETTERS[event.key]) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      go({ view: LETTERS[event.key] });
    };
    addEventListener("keydown", listen, true);
    return () => removeEventListener("keydown", listen, true);
  }, []);
  const find = () => search.current.focus();
  useKeys({
    g: (event) => {
      left.current = event.timeStamp;
    },
    "/": find,
    "meta+k": find,
    "?": () => setHelp(true),
    Escape: () => route.query.show && go({ show: null }),
  });
  const title = PLACES.find(([name]) => name === route.view)?.[1] ?? "Memorist";
  useEffect(() => {
    document.title = `${title} · Memorist`;
  }, [title]);
  return html`<a
      class="skip"
      href="#main"
      onClick=${(event) => {
        event.preventDefault();
        document.getElementById("main").focus();
      }}
      >Skip to the content</a
    >
    <${TopBar} me=${me} route=${route} search=${search} />
    <${Rail} view=${route.view} />
    <main id="main" tabindex="-1" aria-label=${title}>
      <h1 class="hidden">${title}</h1>
      <${View} route=${route} me=${me} />
    </main>
    ${route.query.show && html`<${Inspector} key=${route.query.show} show=${route.query.show} />`}
    <${Messages} />
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}`;
}

function App() {
  const [me, setMe] = useState(null);
  const [wanted, setWanted] = useState(false);
  const read = useRead((signal) => api.get("me", { user: null }, { signal }), []);
  // At once: after the next frame, the answer that asks for a key may have come already.
  useLayoutEffect(() => {
    const ask = () => setWanted(true);
    addEventListener("memorist-key-wanted", ask);
    return () => removeEventListener("memorist-key-wanted", ask);
  }, []);
  const caller = me ?? read.data;
  if (wanted)
    return html`<${SignIn}
      onDone=${(it) => {
        setMe(it);
        setWanted(false);
      }}
    />`;
  if (read.error && !me) return html`<${Problem} error=${read.error} retry=${read.reload} />`;
  return caller
    ? html`<${Caller.Provider} value=${caller}><${Frame} me=${caller} /><//>`
    : null;
}

render(html`<${App} />`, document.getElementById("app"));
