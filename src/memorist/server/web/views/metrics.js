// The server's metrics: reading Prometheus's text format, and times from histograms.

// {name: [{labels, value}]}
export function parseMetrics(text) {
  const metrics = {};
  for (const line of text.split("\n")) {
    const [, name, labels = "", value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (!name) continue;
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text]);
    (metrics[name] ??= []).push({ labels: Object.fromEntries(pairs), value: Number(value) });
  }
  return metrics;
}

export const total = (metrics, name, wanted = {}) =>
  (metrics[name] ?? [])
    .filter(({ labels }) => Object.entries(wanted).every(([key, value]) => labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);

// {count, sum, buckets: [{most, count}]}, each bucket with its own count.
export function histogram(metrics, name) {
  const cumulative = (metrics[`${name}_bucket`] ?? []).map(({ labels, value }) => ({
    most: labels.le === "+Inf" ? Infinity : Number(labels.le),
    value,
  }));
  const buckets = cumulative.map(({ most, value }, i) => ({
    most,
    count: value - (cumulative[i - 1]?.value ?? 0),
  }));
  return { count: total(metrics, `${name}_count`), sum: total(metrics, `${name}_sum`), buckets };
}

export const since = (now, before) => ({
  count: now.count - before.count,
  sum: now.sum - before.sum,
  buckets: now.buckets.map(({ most, count }, i) => ({
    most,
    count: count - (before.buckets[i]?.count ?? 0),
  })),
});

// The value that a share of all stayed below, as near as the buckets tell; null without any.
export function quantile({ count, buckets }, share) {
  if (!count) return null;
  let [seen, least] = [0, 0];
  for (const { most, count: here } of buckets) {
    if (seen + here >= share * count && here)
      return most === Infinity ? least : least + ((most - least) * (share * count - seen)) / here;
    seen += here;
    if (most !== Infinity) least = most;
  }
  return least;
}
