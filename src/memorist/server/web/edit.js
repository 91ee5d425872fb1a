// Changing what is remembered: edit an item, forget it after a preview of what goes, retract it.

import { api } from "./api.js";
import { number } from "./format.js";
import { go } from "./route.js";
import { Dialog, Loaded, attempt, html, say, useEffect, useRead, useRef, useState } from "./ui.js";

export const KINDS = ["fact", "concept", "episode", "procedure", "working"];
const PATHS = { memory: "memories", fact: "facts" };

// Undo of a change that made `id` out of `before`.
const undoTo = (kind, id, before) =>
  attempt(async () => {
    await api.post(`${PATHS[kind]}/${encodeURIComponent(id)}/undo`);
    go({ show: `${kind}:${before}` }, { replace: true });
    say("Undone.");
  });

export function EditForm({ kind, item, onClose }) {
  const form = useRef(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    const before = document.activeElement;
    form.current.querySelector("textarea, input").focus();
    return () => before?.isConnected && before.focus?.();
  }, []);
  const save = async (event) => {
    event.preventDefault();
    const changes = changesOf(kind, item, new FormData(form.current));
    if (!Object.keys(changes).length) return onClose();
    setBusy(true);
    const { id } = await api.patch(`${PATHS[kind]}/${encodeURIComponent(item.id)}`, changes);
    go({ show: `${kind}:${id}` }, { replace: true });
    say("Changed.", { undo: undoTo(kind, id, item.id) });
    return onClose();
  };
  const onKeyDown = (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      onClose();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      form.current.requestSubmit();
    }
  };
  const failed = () => setBusy(false);
  return html`<form
    class="edit"
    aria-label="Edit"
    ref=${form}
    onKeyDown=${onKeyDown}
    onSubmit=${(event) => attempt(save)(event).finally(failed)}
  >
    ${kind === "fact" ? html`<${FactFields} fact=${item} />` : html`<${MemoryFields} memory=${item} />`}
    <p class="meta">The old one stays in the history; the change can be undone.</p>
    <div class="actions">
      <button class="primary" disabled=${busy}>Save <kbd>Ctrl Enter</kbd></button>
      <button type="button" onClick=${onClose}>Cancel</button>
    </div>
  </form>`;
}

const FactFields = ({ fact }) =>
  ["subject", "predicate", "object"].map(
    (name) =>
      html`<label>${name}<input name=${name} defaultValue=${fact[name]} required /></label>`,
  );

const MemoryFields = ({ memory }) => html`
  <label
    >statement<textarea name="text" rows="3" required defaultValue=${memory.text}></textarea>
  </label>
  <label
    >kind
    <select name="kind">
      ${KINDS.map((kind) => html`<option value=${kind} selected=${kind === memory.kind}>${kind}</option>`)}
    </select>
  </label>
  <label>category<input name="category" defaultValue=${memory.category} required /></label>
  <label
    >importance<input
      name="importance"
      type="number"
      min="0"
      max="1"
      step="0.01"
      defaultValue=${memory.importance}
  /></label>
  <label
    >tags<input name="tags" defaultValue=${memory.tags.join(", ")} placeholder="home, work"
  /></label>
`;

// The fields that are other than they were.
function changesOf(kind, item, data) {
  const fields = Object.fromEntries(data);
  if (kind === "memory") {
    fields.importance = Number(fields.importance);
    fields.tags = fields.tags
      .split(",")
      .map((tag) => tag.trim())
      .filter(Boolean);
  }
  const same = (one, two) => JSON.stringify(one) === JSON.stringify(two);
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => !same(value, item[name])),
  );
}

// What would go, and after that what went.
function forget(kind, id, dryRun) {
  if (kind === "memory")
    return api.delete(`memories/${encodeURIComponent(id)}`, { dry_run: dryRun });
  return api.post("forget", { [kind === "fact" ? "memory" : kind]: id, dry_run: dryRun });
}

const NOUNS = {
  memories: ["memory", "memories"],
  facts: ["fact", "facts"],
  messages: ["message", "messages"],
  sessions: ["conversation", "conversations"],
  passages: ["entry of the index", "entries of the index"],
  vectors: ["vector", "vectors"],
};
export const counted = (counts) =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => [
      count,
      NOUNS[name]?.[count === 1 ? 0 : 1] ?? name.replaceAll("_", " "),
    ]);

export function ForgetDialog({ kind, id, onClose }) {
  const preview = useRead(() => forget(kind, id, true), [kind, id]);
  const remove = attempt(async () => {
    const { counts } = await forget(kind, id, false);
    const parts = counted(counts).map(([count, noun]) => `${number(count)} ${noun}`);
    onClose();
    go({ show: null });
    say(`Forgotten: ${parts.join(", ")}.`);
  });
  const retract = attempt(async () => {
    await api.post(`${PATHS[kind]}/${encodeURIComponent(id)}/retract`, { reason: "retracted" });
    onClose();
    say("Retracted; it stays in the history.", { undo: undoTo(kind, id, id) });
  });
  return html`<${Dialog} title=${`Forget this ${kind}?`} onClose=${onClose}
    ><${Loaded} read=${preview} rows=${3}
      >${({ counts }) => html`
        <p>This goes for good, and cannot be undone:</p>
        <ul class="going" aria-label="What will go">
          ${counted(counts).map(
            ([count, noun]) => html`<li><strong>${number(count)}</strong> ${noun}</li>`,
          )}
        </ul>
        ${
          kind === "message"
            ? html`<p class="meta">What was remembered because of it goes, too.</p>`
            : html`<p class="meta">
                The messages it came from stay. If it was only wrong, retract it: it stays in the
                history, and that can be undone.
              </p>`
        }
        <div class="actions">
          ${PATHS[kind] && html`<button onClick=${retract}>Retract instead</button>`}
          <button class="danger" onClick=${remove}>Forget for good</button>
          <button onClick=${onClose}>Cancel</button>
        </div>
      `}<//
    ><//
  >`;
}
