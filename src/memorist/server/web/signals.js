// The signals of a hit's score: their order, their colours and what each of them means are the
// same wherever a hit is shown.

import { ago, exactTime, percent } from "./format.js";
import { Bar, html } from "./ui.js";

export const CHANNELS = ["words", "meaning", "links", "recency"];

// Name, slot of the palette, and what it says of a hit. Signals of one family share a colour.
const SIGNALS = [
  ["words", 1, () => "It shares words with the question, or holds synonyms of them."],
  ["meaning", 2, (hit) => `The passage is near the question in meaning${nearness(hit)}.`],
  ["links", 3, () => "Facts link it with what the question names."],
  ["neighbours", 4, () => "The messages beside it match, too."],
  ["session", 4, () => "Other messages of its session match."],
  ["opening", 4, () => "It opens its session, and says what that is about."],
  [
    "role",
    5,
    (hit) => `It is in the words of the ${hit.role ?? "user"}, whom the question is about.`,
  ],
  ["speaker", 5, (hit) => `${hit.speaker ?? "Its speaker"} is named in the question.`],
  ["self_reference", 5, () => "Somebody speaks of themselves in it."],
  ["when", 6, (hit) => `It was said in the time asked about: ${exactTime(hit.created_at)}.`],
  ["update", 6, () => "It updates a message that fits the question, so it stands just above that."],
  ["recency", 6, (hit) => `It was said ${ago(hit.created_at)}.`],
  ["importance", 7, () => "It matters more than most."],
  ["outdated", 7, () => "Something newer was said since: that takes from its score."],
  ["question", 7, () => "It asks something itself: that takes from its score."],
  ["learned", 7, () => "A net that has seen many answers weighs all of this together."],
];
const nearness = (hit) =>
  hit.why.scores.meaning === undefined ? "" : ` (cosine ${hit.why.scores.meaning.toFixed(2)})`;
const label = (name) => name.replace("_", " ");
const points = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

// The parts of a hit's score in their fixed order; unknown ones come last.
export function partsOf(hit) {
  const known = SIGNALS.map(([name, slot]) => ({ name, slot }));
  const others = Object.keys(hit.why.parts).filter((name) => !known.some((it) => it.name === name));
  return [...known, ...others.map((name) => ({ name, slot: 7 }))]
    .filter(({ name }) => Math.abs(hit.why.parts[name] ?? 0) >= 0.0005)
    .map(({ name, slot }) => {
      const value = hit.why.parts[name];
      return { name, slot, value, label: points(value) };
    });
}

export const rankingScore = (hit) =>
  partsOf(hit).reduce((sum, part) => sum + Math.max(part.value, 0), 0);

// The bar of a hit; `most` is the ranking score of the best one, so that bars compare.
export const ScoreBar = ({ hit, most, picked, onPick }) =>
  html`<${Bar}
    parts=${partsOf(hit).map((part) => ({ ...part, name: label(part.name) }))}
    total=${Math.max(most, 0.001)}
    label=${`Score ${percent(hit.score)}: its parts`}
    picked=${picked && label(picked)}
    onPick=${onPick && ((name) => onPick(name.replace(" ", "_")))}
  />`;

// What one signal says of a hit, or all of them in a line each.
export function Explanation({ hit, signal, question }) {
  const parts = partsOf(hit);
  const shown = parts.filter((part) => part.name === signal);
  const [, , says] = SIGNALS.find(([name]) => name === signal) ?? [];
  return html`<div class="explanation">
    <p>
      <span class=${`swatch segment-${shown[0]?.slot ?? 7}`}></span
      ><strong>${label(signal)} ${shown[0]?.label}</strong>${" "}
      ${hit.why.ranks[signal] && html`<span class="meta">place ${hit.why.ranks[signal]}</span>`}
    </p>
    <p>${says?.(hit)}</p>
    <p class="quote text"><${Matched} text=${hit.text} signal=${signal} question=${question} /></p>
  </div>`;
}

export const Legend = () =>
  html`<p class="legend meta" aria-label="Signals">
    ${[
      ["words", 1],
      ["meaning", 2],
      ["links", 3],
      ["conversation", 4],
      ["who", 5],
      ["time", 6],
      ["importance", 7],
    ].map(
      ([name, slot]) =>
        html`<span
          ><span class=${`swatch segment-${slot}`} aria-hidden="true"></span>${name}</span
        >`,
    )}
  </p>`;

// What matched, highlighted

const STOP = new Set(
  "the a an is are was were do does did has have had of to in on at for and or with what when where who why how which she he they them her his their you your i me my it its".split(
    " ",
  ),
);
const SELF = new Set(
  "i i'm me my mine myself we us our ours ich mich mir mein meine wir uns unser je moi mon ma mes nous yo mi mis nosotros io mio mia noi".split(
    " ",
  ),
);
const WORD = /([\p{L}\p{N}'’]+)/u;

// Two words of one stem, as far as their beginnings tell.
function alike(one, two) {
  const shorter = Math.min(one.length, two.length);
  let same = 0;
  while (same < shorter && one[same] === two[same]) same += 1;
  return same >= Math.max(3, Math.ceil(shorter * 0.75)) || (one === two && shorter > 0);
}

export const wordsOf = (question) =>
  (question.toLowerCase().match(/[\p{L}\p{N}'’]+/gu) ?? []).filter((word) => !STOP.has(word));

export function Matched({ text, signal, question }) {
  if (signal === "meaning") return html`<mark>${text}</mark>`;
  const asked = wordsOf(question);
  const tests = {
    words: (word) => asked.some((it) => alike(it, word)),
    self_reference: (word) => SELF.has(word),
  };
  const test = { ...tests, links: tests.words }[signal];
  if (!test) return text;
  return text
    .split(WORD)
    .map((piece, i) => (i % 2 && test(piece.toLowerCase()) ? html`<mark>${piece}</mark>` : piece));
}
