// Upkeep of a user's memory: the audit, maintenance, and rebuilding from the log.

import { api } from "../api.js";
import { number, plural } from "../format.js";
import { go } from "../route.js";
import { Dialog, Loaded, attempt, html, say, useEffect, useRead, useRef, useState } from "../ui.js";

// Opens the memory or the fact with an id.
const open = attempt(async (id) => {
  const memory = await api.get(`memories/${id}`).catch((error) => {
    if (error.status !== 404) throw error;
    return null;
  });
  go({ show: `${memory ? "memory" : "fact"}:${id}` });
});

const Ids = ({ ids }) =>
  html`${ids.slice(0, 5).map((id) => html`<button class="quiet" onClick=${() => open(id)}><code>${id.slice(-8)}</code></button>`)}${ids.length > 5 ? ` and ${number(ids.length - 5)} more` : ""}`;

export function Audit({ agent }) {
  const [round, setRound] = useState(0);
  return html`<section aria-label="Audit">
    <header>
      <h2>Audit</h2>
      <button onClick=${() => setRound(round + 1)}>
        ${round ? "Look again" : "Look for problems"}
      </button>
    </header>
    ${
      round
        ? html`<${Findings} key=${round} agent=${agent} />`
        : html`<p class="meta">
            Which memories are junk, doubled, stale, contradictory or hold secrets. It changes
            nothing.
          </p>`
    }
  </section>`;
}

function Findings({ agent }) {
  const read = useRead((signal) => api.get("audit", { agent }, { signal }), [agent]);
  return html`<${Loaded} read=${read}
    >${({ memories, facts, findings }) =>
      html`<p role="status">
          ${findings.length ? plural(findings.length, "finding") : "Nothing to mend"} in
          ${plural(memories, "memory", "memories")} and ${plural(facts, "fact")}.
        </p>
        ${
          findings.length > 0 &&
          html`<table>
            <caption class="hidden">
              Findings
            </caption>
            <thead>
              <tr>
                <th>What</th>
                <th>Why</th>
                <th>What to do</th>
                <th>Where</th>
              </tr>
            </thead>
            <tbody>
              ${findings.slice(0, 100).map(
                (one) =>
                  html`<tr>
                    <td>${one.kind}</td>
                    <td>
                      ${one.reason}${one.evidence?.length ? ` (${one.evidence.join(", ")})` : ""}
                    </td>
                    <td>${one.suggestion}</td>
                    <td><${Ids} ids=${one.ids} /></td>
                  </tr>`,
              )}
            </tbody>
          </table>`
        }`}<//
  >`;
}

export function Maintenance({ agent }) {
  const [report, setReport] = useState(null);
  const run = (dry) =>
    attempt(async () => {
      const result = await api.post("maintain", { agent, dry_run: dry });
      setReport(result);
      if (!dry) say(`${plural(result.changes.length, "change")} made.`);
    });
  const changes = report?.changes ?? [];
  const verb = report?.dry_run ? "would be made" : "made";
  return html`<section aria-label="Maintenance">
    <header>
      <h2>Maintenance</h2>
      <button onClick=${run(true)}>Dry run</button>
      ${report?.dry_run && changes.length > 0 && html`<button onClick=${run(false)}>Apply</button>`}
    </header>
    ${
      report
        ? html`<p role="status">
              ${changes.length ? `${plural(changes.length, "change")} ${verb}:` : "Nothing is to be done."}
            </p>
            <ul class="plain">
              ${changes
                .slice(0, 100)
                .map(
                  ({ change, what }) =>
                    html`<li>
                      ${change}: ${what.reason} <${Ids} ids=${what.id ? [what.id] : []} />
                    </li>`,
                )}
            </ul>`
        : html`<p class="meta">
            Expires and promotes memories by the policies. The dry run says what it would do.
          </p>`
    }
  </section>`;
}

// Everything that was derived is thrown away and made again from the log.
export function Rebuild({ waiting }) {
  const [asking, setAsking] = useState(false);
  const jobs = Object.entries(waiting.data?.waiting ?? {})
    .filter(([kind]) => kind !== "dead")
    .reduce((sum, [, value]) => sum + value, 0);
  const most = useRef(0);
  const [under, setUnder] = useState(false);
  most.current = under ? Math.max(most.current, jobs) : 0;
  useEffect(() => {
    if (!under || jobs || waiting.data?.waiting.rebuild) return;
    setUnder(false);
    say("Rebuilt.");
  }, [waiting.data]);
  const start = attempt(async () => {
    setAsking(false);
    await api.post("rebuild");
    waiting.reload();
    setUnder(true);
  });
  return html`<section aria-label="Rebuild">
    <header>
      <h2>Rebuild</h2>
      <button class="danger" disabled=${under} onClick=${() => setAsking(true)}>Rebuild…</button>
    </header>
    ${
      under
        ? html`<label class="grow" role="status"
            >${plural(jobs, "job")} left
            <progress max=${Math.max(most.current, 1)} value=${most.current - jobs}></progress
          ></label>`
        : html`<p class="meta">Makes memories, facts and indexes again from the messages.</p>`
    }
    ${
      asking &&
      html`<${Dialog} title="Rebuild this memory?" onClose=${() => setAsking(false)}
        ><p>
          Memories, facts, summaries and indexes are thrown away and made again from the messages.
          What a person decided stays. Meanwhile recall finds less.
        </p>
        <div class="choices">
          <button onClick=${() => setAsking(false)}>Leave it as it is</button>
          <button class="danger" onClick=${start}>Rebuild</button>
        </div><//
      >`
    }
  </section>`;
}
