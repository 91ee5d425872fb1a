// How long recalls and contexts take: a histogram, and the last ten minutes as lines.

import { milliseconds, number } from "../format.js";
import { html } from "../ui.js";
import { histogram, quantile, since } from "./metrics.js";

const [WIDTH, HEIGHT] = [480, 120];
const ms = (seconds) => (seconds === null ? "–" : milliseconds(seconds * 1_000));
const bound = (seconds) =>
  seconds === Infinity ? "more" : seconds < 1 ? `${seconds * 1_000}` : `${seconds} s`;

export function Latency({ title, name, history }) {
  const all = histogram(history.at(-1)?.metrics ?? {}, name);
  const figures = `${number(all.count)} in all, half within ${ms(quantile(all, 0.5))}, 95 of 100 within ${ms(quantile(all, 0.95))}`;
  return html`<figure class="chart">
    <figcaption>
      <b>${title}</b> <span class="meta">${all.count ? figures : "none yet"}</span>
    </figcaption>
    ${all.count > 0 && html`<${Bars} buckets=${all.buckets} label=${`${title}: ${figures}`} />`}
    ${history.length > 2 && all.count > 0 && html`<${Lines} readings=${recent(history, name)} title=${title} />`}
  </figure>`;
}

function Bars({ buckets, label }) {
  const most = Math.max(...buckets.map(({ count }) => count), 1);
  const step = WIDTH / buckets.length;
  return html`<svg viewBox=${`0 0 ${WIDTH} ${HEIGHT + 20}`} role="img" aria-label=${label}>
    ${buckets.map(({ most: end, count }, i) => {
      const height = (count / most) * (HEIGHT - 16);
      return html`<g transform=${`translate(${i * step} 0)`}>
        <title>up to ${bound(end)}${end < 1 ? " ms" : ""}: ${count}</title>
        <rect
          x="1"
          width=${step - 2}
          y=${HEIGHT - Math.max(height, count ? 2 : 0)}
          height=${Math.max(height, count ? 2 : 0)}
        />
        ${count > 0 && html`<text x=${step / 2} y=${HEIGHT - height - 4}>${number(count)}</text>`}
        <text x=${step / 2} y=${HEIGHT + 14}>${bound(end)}${i === 0 ? " ms" : ""}</text>
      </g>`;
    })}
    <line x2=${WIDTH} y1=${HEIGHT} y2=${HEIGHT} />
  </svg>`;
}

// Between each two readings: when, and how long half and nearly all took.
function recent(history, name) {
  return history.slice(1).map((reading, i) => {
    const part = since(histogram(reading.metrics, name), histogram(history[i].metrics, name));
    return { at: reading.at, half: quantile(part, 0.5), most: quantile(part, 0.95) };
  });
}

function Lines({ readings, title }) {
  const known = readings.filter(({ most }) => most !== null);
  if (known.length < 2) return null;
  const top = Math.max(...known.map(({ most }) => most));
  const [first, last] = [known[0].at, known.at(-1).at];
  const x = (at) => ((at - first) / (last - first || 1)) * WIDTH;
  const path = (of) =>
    known
      .map((one) => `${x(one.at).toFixed(1)} ${(60 - (one[of] / top) * 52).toFixed(1)}`)
      .join("L");
  const text = `${title} in the last minutes: at most ${ms(top)}`;
  return html`<svg viewBox=${`0 0 ${WIDTH} 64`} role="img" aria-label=${text}>
    <title>${text}</title>
    <path class="most" d=${`M${path("most")}`} />
    <path class="half" d=${`M${path("half")}`} />
    <line x2=${WIDTH} y1="62" y2="62" />
  </svg>`;
}
