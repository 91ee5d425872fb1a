// Where the entities of a graph stand: each pushes the others away, facts pull theirs together.
// It is settled before the first paint, and the same facts always give the same picture.

const LENGTH = 105; // how far apart the two of a fact like to be
const STEPS = 260;
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

// Positions by name. `names` begins with the entity in the middle; `pairs` are [name, name];
// those in `before` stay where they were; `wide` is how much more room there is sideways.
export function place(names, pairs, before = new Map(), wide = 1.75) {
  const at = new Map(names.map((name) => [name, names.indexOf(name)]));
  const fixed = names.map((name, i) => before.has(name) || (i === 0 && before.size === 0));
  const spots = begin(names, pairs, before, wide);
  const springs = pairs
    .map(([a, b]) => [at.get(a), at.get(b)])
    .filter(([a, b]) => a !== b && a !== undefined && b !== undefined);
  for (let step = 0; step < STEPS; step++)
    settle(spots, springs, fixed, LENGTH * (1 - step / STEPS));
  return new Map(names.map((name, i) => [name, { x: spots[i].x * wide, y: spots[i].y }]));
}

// On a spiral around the middle, or around the neighbour that is there already.
function begin(names, pairs, before, wide) {
  return names.map((name, i) => {
    if (before.has(name)) return { x: before.get(name).x / wide, y: before.get(name).y };
    const pair = pairs.find(([a, b]) => before.has(a === name ? b : b === name ? a : null));
    const near = pair ? before.get(pair[0] === name ? pair[1] : pair[0]) : { x: 0, y: 0 };
    const radius = i === 0 && !before.size ? 0 : LENGTH * (0.4 + 0.35 * Math.sqrt(i));
    const angle = i * GOLDEN;
    return {
      x: near.x / wide + radius * Math.cos(angle),
      y: near.y + radius * Math.sin(angle),
    };
  });
}

function settle(spots, springs, fixed, most) {
  const moves = spots.map(() => ({ x: 0, y: 0 }));
  for (let a = 0; a < spots.length; a++)
    for (let b = a + 1; b < spots.length; b++)
      push(spots[a], spots[b], moves[a], moves[b], (d) => -(LENGTH * LENGTH) / d);
  for (const [a, b] of springs)
    push(spots[a], spots[b], moves[a], moves[b], (d) => (d * d) / LENGTH);
  spots.forEach((spot, i) => {
    if (fixed[i]) return;
    const length = Math.hypot(moves[i].x, moves[i].y) || 1;
    const step = Math.min(length, most) / length;
    spot.x += moves[i].x * step;
    spot.y += moves[i].y * step;
  });
}

// `force` of the distance: positive draws the two together.
function push(a, b, moveA, moveB, force) {
  const [dx, dy] = [b.x - a.x || 0.01, b.y - a.y || 0.01];
  const distance = Math.max(Math.hypot(dx, dy), 1);
  const share = force(distance) / distance;
  moveA.x += dx * share;
  moveA.y += dy * share;
  moveB.x -= dx * share;
  moveB.y -= dy * share;
}
