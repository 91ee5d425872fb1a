// Import and export: a file of another program or an archive comes in, after a look at what is in it; an
// archive of everything goes out.

import { ApiError, api } from "../api.js";
import { count, day, number, percent, plural, size } from "../format.js";
import { html, say, useEffect, useRef, useState } from "../ui.js";

const DOING = { sending: "Sending", reading: "Looking at it", writing: "Bringing it in" };
const ARCHIVE = ".memorist.gz";

export function Transfer({ user, me }) {
  return html`<section aria-label="Import and export" class="transfer">
    <header>
      <h2>Import and export</h2>
      <${Export} />
    </header>
    ${
      user
        ? html`<${Import} most=${me.limits?.file_bytes} />`
        : html`<p class="meta">
            The archive is that of all users. To bring something in, choose a user above.
          </p>`
    }
  </section>`;
}

function Export() {
  const [bytes, setBytes] = useState(null);
  const save = async () => {
    setBytes(0);
    try {
      const saved = await api.download("export", { tell: setBytes });
      say(`Saved ${saved.name}, ${size(saved.bytes)}.`);
    } catch (error) {
      say(error.message);
    }
    setBytes(null);
  };
  return html`${bytes !== null && html`<span class="meta" role="status">${size(bytes)} so far</span>`}
    <button disabled=${bytes !== null} onClick=${save}>Export everything</button>`;
}

// The steps: choose a file, look at what is in it, bring it in, see what came of it.
function Import({ most }) {
  const [state, setState] = useState({});
  const stop = useRef(null);
  const work = async (file, dryRun) => {
    stop.current = new AbortController();
    const archive = file.name.toLowerCase().endsWith(ARCHIVE);
    const query = archive ? {} : { filename: file.name, dry_run: dryRun };
    setState({ file, busy: { doing: "sending", done: 0, total: file.size } });
    try {
      if (most && file.size > most) throw new ApiError(413, { detail: `At most ${size(most)}.` });
      const events = api.upload(archive ? "restore" : "import", file, {
        query,
        signal: stop.current.signal,
      });
      for await (const { event, data } of events) {
        if (event === "progress") setState({ file, busy: data });
        if (event === "error") throw new ApiError(data.status, data);
        if (event === "report") setState({ file, report: data });
      }
    } catch (error) {
      setState(error.name === "AbortError" ? {} : { file, error });
    }
  };
  const choose = (file) => {
    if (!file) return;
    if (file.name.toLowerCase().endsWith(ARCHIVE)) setState({ file, ask: true });
    else work(file, true);
  };
  const { file, busy, report, error, ask } = state;
  if (busy) return html`<${Busy} file=${file} ...${busy} onStop=${() => stop.current.abort()} />`;
  const ready = ask || report?.dry_run;
  return html`
    ${error && html`<p role="alert" class="problem">${file.name}: ${error.message}</p>`}
    ${ask && html`<p role="status">${file.name}: an archive of Memorist, ${size(file.size)}. What is here already stays as it is.</p>`}
    ${report && html`<${Report} file=${file} report=${report} />`}
    ${
      ready
        ? html`<div class="choices">
            <button onClick=${() => setState({})}>Leave it out</button>
            <button class="primary" autofocus onClick=${() => work(file, false)}>
              Bring it in
            </button>
          </div>`
        : html`<${Choose} onChoose=${choose} again=${Boolean(file)} />`
    }
  `;
}

// The file input, which had the focus, is gone: the next step takes it.
function Ready({ onLeave, onGo }) {
  const next = useRef(null);
  useEffect(() => next.current.focus(), []);
  return html`<div class="choices">
    <button onClick=${onLeave}>Leave it out</button>
    <button class="primary" ref=${next} onClick=${onGo}>Bring it in</button>
  </div>`;
}

function Choose({ onChoose, again }) {
  const [over, setOver] = useState(false);
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    onChoose(event.dataTransfer.files[0]);
  };
  return html`<label
    class=${`drop ${over ? "over-it" : ""}`}
    onDragOver=${(event) => {
      event.preventDefault();
      setOver(true);
    }}
    onDragLeave=${() => setOver(false)}
    onDrop=${drop}
  >
    <b>${again ? "Drop another file here, or choose one" : "Drop a file here, or choose one"}</b>
    <span class="meta"
      >A data export of ChatGPT or Claude, transcripts of Claude Code or Codex, mem0, LangChain,
      LangGraph, OpenAI's JSONL, a zip of Markdown, or an archive of Memorist. First you see what is
      in it.</span
    >
    <input type="file" onChange=${(event) => onChoose(event.target.files[0])} />
  </label>`;
}

function Busy({ file, doing, done, total, onStop }) {
  return html`<div class="progress" role="status">
    <label
      >${DOING[doing]}: ${file.name}${total > 0 && `, ${percent(done / total)}`}<progress
        max=${total || 1}
        value=${total ? done : undefined}
      ></progress
    ></label>
    <button onClick=${onStop}>Stop</button>
  </div>`;
}

// An import's counts are by kind; a restore's by type of record.
function Report({ file, report }) {
  const restored = report.there !== undefined;
  const columns = restored
    ? { new: report.added, "there already": report.there, "there otherwise": report.differing }
    : report.dry_run
      ? { "in the file": report.found }
      : { "in the file": report.found, new: report.added, "there already": report.known };
  const kinds = [...new Set(Object.values(columns).flatMap(Object.keys))];
  const left = Object.values(report.reasons ?? {}).reduce((sum, value) => sum + value, 0);
  return html`<div class="report" role="status">
    <p><b>${file.name}</b> · ${headline(report, restored)}</p>
    ${
      kinds.length > 0 &&
      html`<table>
        <caption class="hidden">
          What is in ${file.name}
        </caption>
        <thead>
          <tr>
            <th><span class="hidden">Kind</span></th>
            ${Object.keys(columns).map((name) => html`<th class="number">${name}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${kinds.map(
            (kind) =>
              html`<tr>
                <th scope="row">${kind}</th>
                ${Object.values(columns).map((it) => html`<td class="number">${number(it[kind] ?? 0)}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>`
    }
    ${left > 0 && html`<${LeftOut} report=${report} left=${left} />`}
  </div>`;
}

function headline({ title, conversations, first, last, dry_run: dry }, restored) {
  if (restored) return "restored";
  const span = first ? `, ${day(first)} to ${day(last)}` : "";
  const talks = conversations.count ? `, ${count(conversations)} conversations` : "";
  return `${dry ? "" : "brought in: "}${title}${talks}${span}`;
}

function LeftOut({ report, left }) {
  return html`<details>
    <summary>${number(left)} left out</summary>
    <ul class="plain">
      ${Object.entries(report.reasons).map(
        ([reason, times]) =>
          html`<li>
            ${plural(times, "time")}: ${reason} ${" "}
            <span class="meta">${placesOf(report, reason)}</span>
          </li>`,
      )}
    </ul>
  </details>`;
}

const placesOf = ({ skipped }, reason) => {
  const places = skipped.filter((it) => it.reason === reason).map((it) => it.place);
  return [...new Set(places)].slice(0, 5).join("; ");
};
