// The keyboard: what each view and the frame listen to, and the list that `?` shows.

import { useLayoutEffect, useRef } from "./vendor/preact-htm.js";

const layers = []; // the last one to come is asked first

const typing = (target) =>
  target.closest?.("input, textarea, select, [contenteditable=true]") && target.type !== "checkbox";

// Enter on a link or a button is its own.
const pressing = (event) =>
  event.key === "Enter" && event.target.closest?.("a, button, summary, [role=tab]");

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.defaultPrevented) return;
  if (event.metaKey && event.key !== "k") return;
  if (event.key !== "Escape" && !event.metaKey && typing(event.target)) return;
  if (pressing(event)) return;
  // A dialog has the keyboard for itself.
  if (document.querySelector("dialog[open]")) return;
  const name = event.metaKey ? `meta+${event.key}` : event.key;
  for (const layer of [...layers].reverse()) {
    if (!layer.current[name]) continue;
    event.preventDefault();
    layer.current[name](event);
    return;
  }
});

// `useKeys({j: next, k: previous})`: as long as the component is shown, from its first picture on.
export function useKeys(bindings) {
  const layer = useRef(bindings);
  layer.current = bindings;
  useLayoutEffect(() => {
    layers.push(layer);
    return () => layers.splice(layers.indexOf(layer), 1);
  }, []);
}

export const SHORTCUTS = [
  [
    "g, then c m r g t n a h",
    "go to Chat, Memories, Recall, Graph, Timeline, Notes, Articles, Health",
  ],
  ["/ or ⌘K", "search"],
  ["j, k", "next, previous"],
  ["Enter", "open; in Chat, write a message"],
  ["n", "a new conversation"],
  ["e", "edit"],
  ["f", "forget, after a preview of what goes"],
  ["u", "undo the last change"],
  ["Esc", "close"],
  ["?", "this list"],
];
