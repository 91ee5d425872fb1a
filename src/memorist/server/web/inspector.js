// The inspector: the evidence of what is selected, `show` being "memory:ID", "fact:ID" or
// "message:ID".

import { api } from "./api.js";
import { go, href } from "./route.js";
import { Kind, Loaded, State, Time, html, useRead } from "./ui.js";

export function Inspector({ show }) {
  const [kind, id] = [show.slice(0, show.indexOf(":")), show.slice(show.indexOf(":") + 1)];
  return html`<aside class="inspector" aria-label="Inspector">
    <header>
      <h2>${kind}</h2>
      <button class="quiet" aria-label="Close the inspector" onClick=${() => go({ show: null })}>
        ✕
      </button>
    </header>
    ${kind === "memory" && html`<${MemoryPart} id=${id} />`}
  </aside>`;
}

function MemoryPart({ id }) {
  const read = useRead(
    (signal) => api.get(`memories/${encodeURIComponent(id)}`, {}, { signal }),
    [id],
  );
  return html`<${Loaded} read=${read}
    >${(memory) => html`
      <p class="statement">${memory.text}</p>
      <p class="meta">
        <${Kind} kind=${memory.kind} /> <${State} item=${memory} />
        <${Time} at=${memory.created_at} />
      </p>
      <ul>
        ${memory.sources.map((source) => html`<li><a href=${href({ show: `message:${source}` })}>message</a></li>`)}
      </ul>
    `}<//
  >`;
}
