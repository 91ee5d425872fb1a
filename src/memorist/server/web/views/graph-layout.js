// Where the entities of a graph stand: each pushes the others away, facts pull theirs together.
// It is settled before the first paint, and the same facts always give the same picture.

const LENGTH = 105; // how far apart the two of a fact like to be
const STEPS = 260;
const WORK = 700_000; // pairs that are compared in all, so that many entities cost no more
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

// Positions by name. `names` begins with the entity in the middle; `pairs` are [name, name];
// those in `before` stay where they were; `wide` is how much more room there is sideways.
export function place(names, pairs, before = new Map(), wide = 1.75) {
  const index = new Map(names.map((name, i) => [name, i]));
  const fixed = names.map((name, i) => before.has(name) || (i === 0 && before.size === 0));
  const { x, y } = begin(names, pairs, before, wide);
  const springs = pairs.map((pair) => pair.map((name) => index.get(name)));
  const steps = Math.min(STEPS, Math.ceil((2 * WORK) / names.length ** 2));
  for (let step = 0; step < steps; step++)
    settle(x, y, springs, fixed, LENGTH * (1 - step / steps));
  return new Map(names.map((name, i) => [name, { x: x[i] * wide, y: y[i] }]));
}

// On a spiral around the middle, or around the neighbour that is there already.
function begin(names, pairs, before, wide) {
  const [x, y] = [new Float64Array(names.length), new Float64Array(names.length)];
  names.forEach((name, i) => {
    const pair = pairs.find(([a, b]) => before.has(a === name ? b : b === name ? a : null));
    const near = before.get(name) ?? before.get(pair?.find((other) => other !== name));
    const still = before.has(name) || (i === 0 && !before.size);
    const radius = still ? 0 : LENGTH * (0.4 + 0.35 * Math.sqrt(i));
    x[i] = (near?.x ?? 0) / wide + radius * Math.cos(i * GOLDEN);
    y[i] = (near?.y ?? 0) + radius * Math.sin(i * GOLDEN);
  });
  return { x, y };
}

// One step: every entity goes where it is pushed and pulled, `most` pixels at most.
function settle(x, y, springs, fixed, most) {
  const [goX, goY] = [new Float64Array(x.length), new Float64Array(x.length)];
  const move = (a, b, dx, dy, share) => {
    goX[a] += dx * share;
    goY[a] += dy * share;
    goX[b] -= dx * share;
    goY[b] -= dy * share;
  };
  for (let a = 0; a < x.length; a++)
    for (let b = a + 1; b < x.length; b++) {
      const dx = x[b] - x[a] || 0.01;
      const dy = y[b] - y[a] || 0.01;
      move(a, b, dx, dy, -(LENGTH * LENGTH) / Math.max(dx * dx + dy * dy, 1));
    }
  for (const [a, b] of springs) {
    const [dx, dy] = [x[b] - x[a], y[b] - y[a]];
    if (a !== b) move(a, b, dx, dy, Math.sqrt(dx * dx + dy * dy) / LENGTH);
  }
  for (let i = 0; i < x.length; i++) {
    if (fixed[i]) continue;
    const length = Math.sqrt(goX[i] * goX[i] + goY[i] * goY[i]) || 1;
    const share = Math.min(length, most) / length;
    x[i] += goX[i] * share;
    y[i] += goY[i] * share;
  }
}
