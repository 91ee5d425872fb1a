// Health: what the server is made of, what waits, how long things take, and upkeep.

import { api } from "../api.js";
import { count, number, plural } from "../format.js";
import {
  Loaded,
  Time,
  attempt,
  html,
  say,
  useEffect,
  usePages,
  useRead,
  useRef,
  useState,
} from "../ui.js";
import { Latency } from "./health-charts.js";
import { Transfer } from "./health-transfer.js";
import { Audit, Maintenance, Rebuild } from "./health-upkeep.js";
import { parseMetrics, total } from "./metrics.js";

const STORES = { sqlite: "SQLite", postgres: "PostgreSQL" };
const EVERY_MS = 5_000;
const KEPT = 120; // readings: ten minutes

export default function Health({ route, me }) {
  const user = me.user ?? route.query.user; // an admin's key has no user until one is chosen
  const { agent } = route.query;
  const waiting = useEvery((signal) => api.get("waiting", {}, { signal }));
  return html`<div class="page health">
    <${Server} me=${me} />
    ${user && html`<${Counts} />`}
    ${(user || me.admin) && html`<${Transfer} user=${user} me=${me} />`}
    <${Queue} waiting=${waiting} user=${user} />
    <${Speed} />
    ${
      user &&
      html`<${Audit} agent=${agent} />
        <${Maintenance} agent=${agent} />
        <${Rebuild} waiting=${waiting} />`
    }
  </div>`;
}

// What is read again every five seconds while the page is seen.
function useEvery(read) {
  const [round, setRound] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setRound((n) => n + 1), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return useRead(read, [round]);
}

function Server({ me }) {
  const ready = useEvery(async (signal) => {
    const response = await fetch("/ready", { signal }).catch(() => ({ ok: false }));
    return response.ok;
  });
  const { requests_per_s: rate, burst, body_bytes: body } = me.limits ?? {};
  const parts = [
    ["Store", STORES[me.store] ?? me.store],
    ["State", ready.data === false ? html`<b class="bad">the store does not answer</b>` : "ready"],
    ["Embedder", me.embedder ?? "none: words only"],
    ["Model", me.model ?? "none"],
    ["Version", me.version],
    ["Tenant", me.tenant],
    [
      "Limits",
      `${body ? `${number(body / 1_048_576)} MiB a request, ` : ""}${rate ? `${number(rate)} requests a second, ${number(burst)} at once` : "any number of requests"}`,
    ],
  ];
  return html`<section aria-label="Server">
    <h2>Server</h2>
    <dl class="facts">
      ${parts.map(
        ([name, value]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
    </dl>
  </section>`;
}

function Counts() {
  const read = useEvery((signal) => api.get("counts", {}, { signal }));
  const shown = [
    ["messages", "messages"],
    ["sessions", "sessions"],
    ["memories_current", "memories", "memories"],
    ["facts_current", "facts", "facts"],
    ["articles", "articles"],
  ];
  return html`<section aria-label="Counts">
    <h2>Stored</h2>
    <${Loaded} read=${read} rows="1"
      >${(counts) =>
        html`<dl class="tiles">
          ${shown.map(
            ([name, label, all]) =>
              html`<div>
                <dt>${label}</dt>
                <dd>
                  ${count(counts[name])} ${all && html`<small>current of ${count(counts[all])}</small>`}
                </dd>
              </div>`,
          )}
        </dl>`}<//
    >
  </section>`;
}

// Queue

const KINDS = {
  embed: "messages to embed",
  vectors: "vectors to make",
  derive: "messages to read for memories",
  summarize: "sessions to summarise",
  rebuild: "users to rebuild",
};

function Queue({ waiting, user }) {
  return html`<section aria-label="Queue">
    <h2>Queue</h2>
    <${Loaded} read=${waiting} rows="2"
      >${({ waiting: kinds }) => {
        const { dead, ...live } = kinds;
        const busy = Object.entries(live).filter(([, jobs]) => jobs > 0);
        return html`<p role="status">
            ${
              busy.length
                ? `${plural(
                    busy.reduce((sum, [, n]) => sum + n, 0),
                    "job",
                  )} waiting`
                : "Nothing waits."
            }
            ${dead > 0 && html`<b class="bad">${plural(dead, "job")} given up</b>`}
          </p>
          ${
            busy.length > 0 &&
            html`<ul class="plain">
              ${busy.map(([kind, jobs]) => html`<li>${number(jobs)} ${KINDS[kind] ?? kind}</li>`)}
            </ul>`
          }
          ${dead > 0 && user && html`<${DeadJobs} dead=${dead} onRetry=${waiting.reload} />`}`;
      }}<//
    >
  </section>`;
}

function DeadJobs({ dead, onRetry }) {
  const pages = usePages("jobs", { dead: true });
  useEffect(pages.reload, [dead]);
  const retry = attempt(async (jobs) => {
    for (const job of jobs) await api.post(`jobs/${job.id}/retry`);
    say(`${plural(jobs.length, "job")} will be tried again.`);
    pages.reload();
    onRetry();
  });
  if (!pages.items.length) return null;
  return html`<table>
      <caption class="hidden">
        Jobs that were given up
      </caption>
      <thead>
        <tr>
          <th>Job</th>
          <th>Why</th>
          <th class="number">Attempts</th>
          <th>Last tried</th>
          <th><span class="hidden">Retry</span></th>
        </tr>
      </thead>
      <tbody>
        ${pages.items.map(
          (job) =>
            html`<tr>
              <td>${job.kind} <code>${job.id}</code></td>
              <td>${job.error}</td>
              <td class="number">${job.attempts}</td>
              <td><${Time} at=${job.run_at} /></td>
              <td>
                <button aria-label=${`Retry job ${job.id}`} onClick=${() => retry([job])}>
                  Retry
                </button>
              </td>
            </tr>`,
        )}
      </tbody>
    </table>
    <div class="choices">
      ${!pages.done && html`<button onClick=${pages.more}>More</button>`}
      <button onClick=${() => retry(pages.items)}>Retry these ${number(pages.items.length)}</button>
    </div>`;
}

// Speed

function Speed() {
  const read = useEvery((signal) => readMetrics(signal));
  const history = useRef([]);
  if (read.data && history.current.at(-1) !== read.data)
    history.current = [...history.current.slice(1 - KEPT), read.data];
  if (read.error?.status === 403)
    return html`<section aria-label="Speed">
      <h2>Speed</h2>
      <p class="meta">The metrics are for operators: an admin's key shows them.</p>
    </section>`;
  return html`<section aria-label="Speed">
    <h2>Speed, since the server started</h2>
    <${Loaded} read=${read}
      >${({ metrics }) =>
        html`<div class="charts">
            <${Latency}
              title="Recall"
              name="memorist_recall_duration_seconds"
              history=${history.current}
            />
            <${Latency}
              title="Context"
              name="memorist_context_duration_seconds"
              history=${history.current}
            />
          </div>
          <${Spent} metrics=${metrics} />`}<//
    >
  </section>`;
}

async function readMetrics(signal) {
  return { at: Date.now(), metrics: parseMetrics(await api.text("/metrics", { signal })) };
}

// What models were asked for by the background work, and what went wrong in recall.
function Spent({ metrics }) {
  const rows = [
    ["Calls of a model", total(metrics, "memorist_model_calls_total")],
    ["… that failed", total(metrics, "memorist_model_calls_total", { result: "failed" })],
    ["Tokens of models", total(metrics, "memorist_model_tokens_total")],
    ["Summaries made", total(metrics, "memorist_compressions_total")],
    ["Tokens that summaries saved", total(metrics, "memorist_compression_saved_total")],
    ["Channels of recall that were late", total(metrics, "memorist_recall_late_total")],
    ["Channels of recall that failed", total(metrics, "memorist_recall_failed_total")],
    ["Jobs done", total(metrics, "memorist_jobs_total", { result: "done" })],
    ["Jobs that failed", total(metrics, "memorist_jobs_total", { result: "failed" })],
  ];
  return html`<dl class="facts">
    ${rows.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${number(value)}</dd>
        </div>`,
    )}
  </dl>`;
}
