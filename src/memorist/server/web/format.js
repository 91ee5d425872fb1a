// Times and numbers as people read them.

const UNITS = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "medium" });
const monthOnly = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric" });
const dayOnly = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });

export function ago(moment) {
  const seconds = (new Date(moment) - Date.now()) / 1_000;
  // What would be rounded up to the larger unit is told in it: yesterday, not 24 hours ago.
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= 0.97 * size) ?? [];
  return unit ? relative.format(Math.round(seconds / size), unit) : "just now";
}

export const exactTime = (moment) => exact.format(new Date(moment));
export const month = (moment) => monthOnly.format(new Date(moment));
export const day = (moment) => dayOnly.format(new Date(moment));

// 12345 as 12 345, with thin spaces.
export const number = (value) =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u2009");
export const count = ({ count, more }) => number(count) + (more ? "+" : "");
export const plural = (value, noun, many = `${noun}s`) =>
  `${number(value)} ${value === 1 ? noun : many}`;
export const percent = (share) =>
  `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}\u2009%`;
export const milliseconds = (value) => `${value < 10 ? value.toFixed(1) : number(value)}\u2009ms`;
export const size = (bytes) =>
  bytes < 1e6 ? `${number(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

const OTHER = "(an image or a file)";

// The words of a message, whose content may be text, parts of several kinds, or data.
export function textOf({ content }) {
  if (typeof content === "string") return content;
  if (Array.isArray(content))
    return content.map((part) => part?.text ?? (typeof part === "string" ? part : OTHER)).join("");
  return content == null ? "" : (content.text ?? JSON.stringify(content));
}
