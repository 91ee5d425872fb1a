// What changed between two texts, line by line: [{kind: "same" | "added" | "removed", text}].

const MOST = 4_000_000; // cells of the table; beyond that the middle counts as rewritten

export function diffLines(before, after) {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let head = 0;
  while (head < Math.min(old.length, now.length) && old[head] === now[head]) head += 1;
  let tail = 0;
  const most = Math.min(old.length, now.length) - head;
  while (tail < most && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const [left, right] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)];
  return [
    ...lines("same", old.slice(0, head)),
    ...middle(left, right),
    ...lines("same", old.slice(old.length - tail)),
  ];
}

const lines = (kind, texts) => texts.map((text) => ({ kind, text }));

// The longest common subsequence keeps as many lines as can be kept.
function middle(left, right) {
  if (left.length * right.length > MOST)
    return [...lines("removed", left), ...lines("added", right)];
  const width = right.length + 1;
  const kept = new Uint32Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i--)
    for (let j = right.length - 1; j >= 0; j--)
      kept[i * width + j] =
        left[i] === right[j]
          ? kept[(i + 1) * width + j + 1] + 1
          : Math.max(kept[(i + 1) * width + j], kept[i * width + j + 1]);
  const result = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      result.push({ kind: "same", text: left[i++] });
      j += 1;
    } else if (
      j === right.length ||
      (i < left.length && kept[(i + 1) * width + j] >= kept[i * width + j + 1])
    )
      result.push({ kind: "removed", text: left[i++] });
    else result.push({ kind: "added", text: right[j++] });
  }
  return result;
}
