// Notes: what an agent keeps about a user in Markdown, with every version of it.

import { api } from "../api.js";
import { diffLines } from "../diff.js";
import { plural } from "../format.js";
import { useKeys } from "../keys.js";
import { Markdown } from "../markdown.js";
import { go, href } from "../route.js";
import {
  Empty,
  Loaded,
  Time,
  attempt,
  html,
  say,
  useEffect,
  usePages,
  useRead,
  useState,
} from "../ui.js";

export default function Notes({ route }) {
  const agents = useRead((signal) => api.get("agents", {}, { signal }), []);
  const { agent } = route.query;
  return agent
    ? html`<${Notebook} key=${agent} agent=${agent} query=${route.query} />`
    : html`<${Loaded} read=${agents}
        >${({ items }) =>
          items.length
            ? html`<${Notebook}
                key=${route.query.of ?? items[0]}
                agent=${route.query.of ?? items[0]}
                agents=${items}
                query=${route.query}
              />`
            : html`<${Empty} command="memorist chat"
                >Each agent keeps notes of its own about a user. No agent has spoken yet.<//
              >`}<//
      >`;
}

function Notebook({ agent, agents = [], query }) {
  const versions = usePages("notes/versions", { agent }, { size: 50 });
  const wanted = Number(query.version) || null;
  const read = useRead(
    (signal) => api.get("notes", { agent, version: wanted }, { signal }),
    [agent, wanted, versions.items[0]?.version],
  );
  const editing = query.edit === "1";
  const edit = () => go({ edit: 1, version: null, compare: null });
  const done = (note) => {
    go({ edit: null, version: null });
    if (note) versions.reload();
  };
  useKeys(editing ? {} : { e: edit });
  return html`<div class="pane">
    <div class="toolbar">
      ${
        agents.length > 1 &&
        html`<select
          aria-label="Notes of the agent"
          value=${agent}
          onChange=${(event) => go({ of: event.target.value, version: null, compare: null })}
        >
          ${agents.map((name) => html`<option value=${name}>${name}</option>`)}
        </select>`
      }
      <span class="grow meta"
        >${read.data?.version ? html`version ${read.data.version}, <${Time} at=${read.data.created_at} />` : ""}</span
      >
      ${!editing && html`<button title="edit (e)" onClick=${edit}>Edit</button>`}
    </div>
    <${Loaded} read=${read}
      >${(note) =>
        editing
          ? html`<${Editor} note=${note} agent=${agent} onDone=${done} />`
          : html`<div class="notes">
              <${Shown} note=${note} agent=${agent} compare=${Number(query.compare) || null} />
              <${Versions} versions=${versions} note=${note} query=${query} agent=${agent} />
            </div>`}<//
    >
  </div>`;
}

function Shown({ note, agent, compare }) {
  const other = useRead(
    (signal) => (compare ? api.get("notes", { agent, version: compare }, { signal }) : null),
    [agent, compare],
  );
  if (!note.version)
    return html`<${Empty} command='memorist notes --append "- likes tea"' agent=${agent}
      >This agent has no notes yet. Press <kbd>e</kbd> to write the first.<//
    >`;
  if (!compare)
    return html`<article class="document" aria-label="Notes">
      <${Markdown} text=${note.text} />
    </article>`;
  return html`<${Loaded} read=${other}
    >${(old) =>
      old &&
      html`<section class="document" aria-label="Changes">
        <p class="meta">from version ${old.version} to version ${note.version}</p>
        <${Diff} before=${old.text} after=${note.text} />
      </section>`}<//
  >`;
}

// Two texts, line by line: what went and what came.
export function Diff({ before, after }) {
  const lines = diffLines(before, after);
  const count = (kind) => lines.filter((line) => line.kind === kind).length;
  const sign = { added: "+", removed: "−", same: " " };
  const spoken = { added: "added: ", removed: "removed: ", same: "" };
  return html`<p class="meta">
      ${plural(count("added"), "line")} added, ${plural(count("removed"), "line")} removed
    </p>
    <ol class="diff" tabindex="0" aria-label="Lines">
      ${lines.map(
        ({ kind, text }) =>
          html`<li class=${kind}>
            <span aria-hidden="true">${sign[kind]}</span
            ><span class="hidden">${spoken[kind]}</span>${text || " "}
          </li>`,
      )}
    </ol>`;
}

function Versions({ versions, note, query, agent }) {
  const newest = versions.items[0]?.version;
  const restore = attempt(async (version) => {
    await api.post("notes/restore", { agent, version });
    go({ version: null, compare: null });
    versions.reload();
    const undo = attempt(async () => {
      await api.post("notes/restore", { agent, version: newest });
      versions.reload();
    });
    say(`Version ${version} is the newest again.`, { undo });
  });
  if (!newest) return null;
  return html`<section class="versions" aria-label="Versions">
    <h2>Versions</h2>
    <ul>
      ${versions.items.map(({ version, created_at: at }) => {
        const shown = note.version === version;
        return html`<li aria-current=${shown ? "true" : undefined}>
          <a href=${href({ version: version === newest ? null : version, compare: null })}
            >Version ${version}</a
          >
          <span class="meta"><${Time} at=${at} /></span>
          <span class="choices">
            ${
              version > 1 &&
              html`<a
                aria-label=${`What changed in version ${version}`}
                href=${href({ version: version === newest ? null : version, compare: version - 1 })}
                >changes</a
              >`
            }
            ${
              version !== newest &&
              html`<button
                class="quiet"
                aria-label=${`Restore version ${version}`}
                onClick=${() => restore(version)}
              >
                Restore
              </button>`
            }
          </span>
        </li>`;
      })}
    </ul>
    ${!versions.done && html`<button onClick=${versions.more}>Older versions</button>`}
  </section>`;
}

// Writing a new version. Where somebody else wrote one meanwhile, both are shown.
function Editor({ note, agent, onDone }) {
  const [text, setText] = useState(note.text);
  const [base, setBase] = useState(note);
  const [theirs, setTheirs] = useState(null);
  const unsaved = text !== base.text;
  useLeaveWarning(unsaved);
  const save = attempt(async (version = base.version) => {
    try {
      const saved = await api.put("notes", { agent, text, base_version: version });
      say(`Saved as version ${saved.version}.`);
      onDone(saved);
    } catch (error) {
      if (error.status !== 409) throw error;
      setTheirs(await api.get("notes", { agent }));
    }
  });
  const onKeyDown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
    if (event.key === "Escape" && !unsaved) onDone(null);
  };
  const take = () => {
    setBase(theirs);
    setText(theirs.text);
    setTheirs(null);
  };
  return html`<form
    class="editor"
    onSubmit=${(event) => {
      event.preventDefault();
      save();
    }}
    onKeyDown=${onKeyDown}
  >
    ${
      theirs &&
      html`<section class="problem" role="alert" aria-label="Conflict">
        <p>
          Somebody wrote version ${theirs.version} meanwhile. This is what yours would change in it:
        </p>
        <${Diff} before=${theirs.text} after=${text} />
        <div class="choices">
          <button type="button" onClick=${() => save(theirs.version)}>Write mine over it</button>
          <button type="button" onClick=${take}>Take theirs</button>
          <button type="button" class="quiet" onClick=${() => setTheirs(null)}>
            Go on editing
          </button>
        </div>
      </section>`
    }
    <div class="sides">
      <textarea
        aria-label="Notes in Markdown"
        value=${text}
        autofocus
        spellcheck="false"
        onInput=${(event) => setText(event.target.value)}
      ></textarea>
      <article class="document" aria-label="Preview"><${Markdown} text=${text} /></article>
    </div>
    <div class="toolbar last">
      <span class="grow meta"
        >${unsaved ? "not saved yet" : "nothing changed"} · Ctrl+Enter saves</span
      >
      <button type="button" onClick=${() => onDone(null)}>Cancel</button>
      <button class="primary" disabled=${!unsaved}>Save</button>
    </div>
  </form>`;
}

function useLeaveWarning(unsaved) {
  useEffect(() => {
    const ask = (event) => unsaved && event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [unsaved]);
}
