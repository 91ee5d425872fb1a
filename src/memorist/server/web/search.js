// The search in the top bar: memories and facts as one types; Enter asks the memory.

import { api } from "./api.js";
import { go, href } from "./route.js";
import { Kind, html, useRead, useState, useTyped } from "./ui.js";

const MOST = 5; // of memories, and of facts

async function find(text, agent, signal) {
  const read = (path) => api.get(path, { text, agent, newest_first: true, limit: MOST }, { signal });
  const [memories, facts] = await Promise.all([read("memories"), read("facts")]);
  return [
    ...memories.items.map(({ id, kind, text }) => ({ show: `memory:${id}`, kind, text })),
    ...facts.items.map(({ id, subject, predicate, object }) => ({
      show: `fact:${id}`,
      kind: "fact",
      text: `${subject} ${predicate} ${object}`,
    })),
  ];
}

// `input` is a ref to the field; without a `user`, there is nothing to look in yet.
export function Search({ input, user, agent }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(-1); // which of what was found is chosen
  const [open, setOpen] = useState(false);
  const settled = useTyped(text.trim());
  const read = useRead(
    (signal) => (settled && user ? find(settled, agent, signal) : []),
    [settled, user, agent],
  );
  const found = (open && text.trim() && read.data) || [];
  const type = (event) => {
    setText(event.target.value);
    setAt(-1);
    setOpen(true);
  };
  const submit = (event) => {
    event.preventDefault();
    go(found[at] ? { show: found[at].show } : { view: "recall", question: text });
    setOpen(false);
  };
  const step = { ArrowDown: 1, ArrowUp: -1 };
  const press = (event) => {
    if (event.key === "Escape" && open) {
      event.preventDefault(); // or the text would go, too
      setOpen(false);
    }
    if (!step[event.key] || !found.length) return;
    event.preventDefault();
    setAt(Math.min(Math.max(at + step[event.key], -1), found.length - 1));
  };
  return html`<form
    role="search"
    onSubmit=${submit}
    onFocusOut=${(event) => event.currentTarget.contains(event.relatedTarget) || setOpen(false)}
  >
    <input
      ref=${input}
      type="search"
      role="combobox"
      placeholder="Search"
      aria-label="Search anything"
      aria-keyshortcuts="/"
      aria-autocomplete="list"
      aria-expanded=${found.length > 0}
      aria-controls=${found.length ? "found" : undefined}
      aria-activedescendant=${found[at] && `found-${at}`}
      autocomplete="off"
      value=${text}
      onInput=${type}
      onKeyDown=${press}
    /><kbd aria-hidden="true">/</kbd>
    ${
      open &&
      text.trim() &&
      html`<div class="found">
        ${
          found.length > 0 &&
          html`<div id="found" role="listbox" aria-label="Found">
            ${found.map(
              (it, i) =>
                html`<a
                  key=${it.show}
                  id=${`found-${i}`}
                  role="option"
                  tabindex="-1"
                  aria-selected=${i === at}
                  href=${href({ show: it.show })}
                  onClick=${() => setOpen(false)}
                  ><${Kind} kind=${it.kind} /><span class="clip">${it.text}</span></a
                >`,
            )}
          </div>`
        }
        <p class="meta">
          <kbd>Enter</kbd> ${found[at] ? "opens it" : "asks the memory, which also looks in messages and notes"}
        </p>
      </div>`
    }
  </form>`;
}
