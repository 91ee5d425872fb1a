// Where things stand on the timeline: bands in lanes, marks side by side, arcs, and the axis.

export const LANE = 72;
const STEP = 12; // between marks that would cover each other
const PILE = 16; // so many of them stand side by side; the others are counted
const MINUTE = 60_000;
const DAY = 86_400_000;

// What is drawn of memories and sessions in a range, `width` pixels wide.
export function arrange({ memories, sessions }, range, width) {
  const scale = width / (range.to - range.from);
  const toX = (time) => (time - range.from) * scale;
  const bands = bandsOf(memories, sessions).map((band) => ({ ...band, ...pile(band, toX, width) }));
  const seen = bands.filter((band) => band.x + band.width > 0 && band.x < width);
  const lanes = pack(seen);
  const all = bands.flatMap((band) => band.marks.map((mark) => ({ ...mark, y: band.y + 10 })));
  const marks = all.filter((mark) => mark.y >= 0); // the bands in sight have a lane
  return { bands: seen, lanes, marks, arcs: arcsOf(all) };
}

function bandsOf(memories, sessions) {
  const byId = new Map(
    sessions.map((session) => [session.scope.session, { session, memories: [] }]),
  );
  for (const memory of memories) {
    const id = memory.scope.session ?? "";
    if (!byId.has(id)) byId.set(id, { session: null, memories: [] });
    byId.get(id).memories.push(memory);
  }
  return [...byId].map(([id, one]) => bandOf(id, one));
}

function bandOf(id, { session, memories }) {
  const times = memories.map((memory) => Date.parse(memory.created_at));
  const [created, last] = [session?.created_at, session?.last_active_at];
  const all = [...times, ...(last ? [Date.parse(last)] : [])];
  const stop = Math.max(...all);
  // A conversation that was imported began before its session was made.
  const begun = created && Date.parse(created) <= stop ? [Date.parse(created)] : [];
  const start = Math.min(...all, ...begun);
  const room = Math.max((stop - start) / 8, 10 * MINUTE);
  const title = session?.title || (id ? "New conversation" : "added directly");
  const label = title.length > 32 ? `${title.slice(0, 31)}…` : title;
  return {
    id,
    title,
    label,
    start,
    end: stop,
    memories,
    range: { from: start - room, to: stop + room },
  };
}

// The marks of a band from left to right, none on top of another; many are counted.
function pile(band, toX, width) {
  const sorted = band.memories.toSorted(
    (a, b) => Date.parse(a.created_at) - Date.parse(b.created_at),
  );
  const marks = [];
  let rest = 0;
  for (const memory of sorted) {
    const time = Date.parse(memory.created_at);
    const x = Math.max(toX(time), (marks.at(-1)?.x ?? -Infinity) + STEP);
    if (x - toX(time) > STEP * PILE) rest += 1;
    else marks.push({ memory, time, x });
  }
  const left = Math.min(toX(band.start), marks[0]?.x ?? Infinity) - 10;
  const right = Math.max(toX(band.end), marks.at(-1)?.x ?? -Infinity) + 10;
  const text = band.label.length * 6.4;
  // A label stays inside the drawing as long as its band does.
  const labelX = left < 8 ? 8 - left : Math.min(0, width - 8 - left - text);
  const stop = Math.max(right + (rest ? 32 : 0), left + labelX + text);
  return { marks, rest, labelX, x: left, width: right - left, stop };
}

// The first lane in which a band covers no other, from the top; answers how many there are.
function pack(bands) {
  const ends = [];
  for (const band of bands.sort((a, b) => a.x - b.x)) {
    let lane = ends.findIndex((end) => end + 16 < band.x + Math.min(0, band.labelX));
    if (lane < 0) lane = ends.length;
    ends[lane] = band.stop;
    band.y = 36 + lane * LANE;
  }
  return ends.length;
}

function arcsOf(marks) {
  const byId = new Map(marks.map((mark) => [mark.memory.id, mark]));
  return marks.flatMap((old) => {
    const next = byId.get(old.memory.superseded_by);
    if (!next || !(old.y >= 0 || next.y >= 0)) return [];
    // One end may be out of sight: the arc leaves at the height of the other.
    const [from, to] = [(old.y || next.y) - 6, (next.y || old.y) - 8];
    const high = Math.min(from, to) - 12 - Math.min(24, Math.abs(next.x - old.x) / 8);
    const path = `M${old.x} ${from}C${old.x} ${high} ${next.x} ${high} ${next.x} ${to}`;
    return [{ path, text: `${old.memory.text} was updated: ${next.memory.text}` }];
  });
}

const UNITS = [
  [10 * MINUTE, { hour: "2-digit", minute: "2-digit" }],
  [60 * MINUTE, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }],
  [6 * 60 * MINUTE, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }],
  [DAY, { day: "numeric", month: "short" }],
  [7 * DAY, { day: "numeric", month: "short" }],
];
const MONTHS = [1, 3, 6, 12, 60, 120];

// The lines of the axis: times at least 88 pixels apart, on round moments.
export function ticks(range, width) {
  const enough = ((range.to - range.from) * 88) / width;
  const toX = (time) => ((time - range.from) / (range.to - range.from)) * width;
  const unit = UNITS.find(([size]) => size >= enough);
  const times = unit
    ? even(range, unit[0])
    : monthly(range, MONTHS.find((n) => n * 30 * DAY >= enough) ?? 120);
  const format = new Intl.DateTimeFormat("en-GB", unit?.[1] ?? { month: "short", year: "numeric" });
  return times.map((time) => ({ x: toX(time), text: format.format(time) }));
}

function even({ from, to }, size) {
  const zone = new Date(from).getTimezoneOffset() * MINUTE; // days begin at midnight here
  const times = [];
  for (let at = Math.ceil((from - zone) / size) * size + zone; at < to; at += size) times.push(at);
  return times;
}

function monthly({ from, to }, step) {
  const begin = new Date(from);
  const first = begin.getFullYear() * 12 + begin.getMonth() + 1;
  const times = [];
  for (let month = Math.ceil(first / step) * step; ; month += step) {
    const time = new Date(0, month - 1900 * 12).getTime();
    if (time >= to) return times;
    times.push(time);
  }
}
