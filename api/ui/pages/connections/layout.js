// Where agents stand in the graph: those that have to do with each other near, none over another, all within the picture.

/** The place that an agent with its name takes, in pixels. */
export const CELL = { width: 112, height: 66 };
/** Part of the picture that agents may take; the rest is room for lines. */
const FILL = 0.55;
const ROUNDS_NEW = 160;
const ROUNDS_MORE = 40;
const ROUNDS_APART = 60;

/** How many agents a picture of this size shows. */
export function capacity(width, height) {
  const cells = Math.floor(width / CELL.width) * Math.floor(height / CELL.height);
  return Math.max(4, Math.floor(cells * FILL));
}

/** A number from 0 to 1 that is always the same for the same text. */
function hashed(text) {
  let sum = 2166136261;
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 16777619);
  return ((sum >>> 0) % 10_007) / 10_007;
}

/**
 * Gives each of `nodes` a place in `places` (a map of `{ x, y }` by id), near the one that it has, and takes out all others. `edges`
 * are pairs of ids.
 */
export function arrange(places, nodes, edges, { width, height }) {
  const ids = new Set(nodes.map(({ id }) => id));
  for (const id of places.keys()) if (!ids.has(id)) places.delete(id);
  const isNew = places.size === 0;
  const near = new Map();
  for (const [from, to] of edges) {
    near.set(from, to);
    near.set(to, from);
  }
  for (const { id } of nodes) {
    if (places.has(id)) continue;
    const beside = places.get(near.get(id));
    const turn = hashed(id) * 2 * Math.PI;
    const reach = beside ? 60 : 0.25 + hashed(`${id}r`) * 0.2;
    places.set(id, beside
      ? { x: beside.x + Math.cos(turn) * reach, y: beside.y + Math.sin(turn) * reach }
      : { x: width / 2 + Math.cos(turn) * width * reach, y: height / 2 + Math.sin(turn) * height * reach });
  }
  const all = nodes.map(({ id }) => places.get(id));
  const pairs = edges.map(([from, to]) => [places.get(from), places.get(to)]);
  const rounds = isNew ? ROUNDS_NEW : ROUNDS_MORE;
  const spring = Math.sqrt((width * height) / Math.max(1, all.length)) * 0.6;
  for (let round = 0; round < rounds; round += 1) pull(all, pairs, { width, height, spring, step: (isNew ? 40 : 12) * (1 - round / rounds) + 0.5 });
  for (let round = 0; round < ROUNDS_APART; round += 1) if (!apart(all, width, height)) break;
}

/** One round of forces: each pushes all others away, relations and the middle draw. Names are wide: across counts less than down. */
function pull(all, pairs, { width, height, spring, step }) {
  const wide = CELL.width / CELL.height;
  for (const one of all) {
    one.dx = (width / 2 - one.x) * 0.07;
    one.dy = (height / 2 - one.y) * 0.1;
  }
  for (let a = 0; a < all.length; a += 1) {
    for (let b = a + 1; b < all.length; b += 1) {
      const x = (all[a].x - all[b].x) / wide || 0.1 * (a - b);
      const y = all[a].y - all[b].y || 0.1;
      const force = (spring * spring * 0.12) / (x * x + y * y);
      all[a].dx += x * force * wide;
      all[a].dy += y * force;
      all[b].dx -= x * force * wide;
      all[b].dy -= y * force;
    }
  }
  for (const [from, to] of pairs) {
    const x = from.x - to.x;
    const y = from.y - to.y;
    const force = Math.hypot(x, y) / spring / 6;
    from.dx -= x * force;
    from.dy -= y * force;
    to.dx += x * force;
    to.dy += y * force;
  }
  for (const one of all) {
    const length = Math.hypot(one.dx, one.dy) || 1;
    one.x += (one.dx / length) * Math.min(length, step);
    one.y += (one.dy / length) * Math.min(length, step);
    keepWithin(one, width, height);
  }
}

function keepWithin(one, width, height) {
  one.x = Math.min(width - CELL.width / 2, Math.max(CELL.width / 2, one.x));
  one.y = Math.min(height - CELL.height * 0.72, Math.max(CELL.height * 0.38, one.y));
}

/** Moves those that stand over each other apart; tells whether there were any. */
function apart(all, width, height) {
  let moved = false;
  for (let a = 0; a < all.length; a += 1) {
    for (let b = a + 1; b < all.length; b += 1) {
      const x = all[a].x - all[b].x;
      const y = all[a].y - all[b].y;
      const overX = CELL.width - Math.abs(x);
      const overY = CELL.height - Math.abs(y);
      if (overX <= 0 || overY <= 0) continue;
      moved = true;
      if (overX / CELL.width < overY / CELL.height) {
        const by = ((x < 0 ? -1 : 1) * overX) / 2;
        all[a].x += by;
        all[b].x -= by;
      } else {
        const by = ((y < 0 ? -1 : 1) * overY) / 2;
        all[a].y += by;
        all[b].y -= by;
      }
      keepWithin(all[a], width, height);
      keepWithin(all[b], width, height);
    }
  }
  return moved;
}
