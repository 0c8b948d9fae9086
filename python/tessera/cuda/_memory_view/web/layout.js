// Where everything lies on a timeline of some columns: as much work as there are pixels, not events.
const EXACT = 1 << 18;  // windows of fewer states are replayed event by event, larger ones take the bins

// For each column the state of its peak, and every group's bytes there.
function columns(count) {
  const states = new Uint32Array(count), sums = new Float64Array(count * GROUP_COUNT);
  const step = (view.to - view.from) / count;
  const first = stateAt(view.from), last = stateAt(view.to);
  const exact = last - first <= EXACT;
  const now = new Float64Array(GROUP_COUNT);
  let at = -1, s0 = first;
  for (let c = 0; c < count; c++) {
    const s1 = c + 1 === count ? last : stateAt(view.from + (c + 1) * step);
    if (exact) {
      let best = s0;
      for (let s = s0 + 1; s <= s1; s++) if (allocated[s] > allocated[best]) best = s;
      states[c] = best;
      if (at < 0) at = checkpoint(best, now);
      groupSums(at, best, now);
      at = best;
      sums.set(now, c * GROUP_COUNT);
    } else {
      const b0 = Math.floor(s0 / D.binWidth), b1 = Math.max(b0 + 1, Math.floor(s1 / D.binWidth));
      let best = b0;
      for (let b = b0 + 1; b < b1; b++) if (allocated[A.binPeak[b]] > allocated[A.binPeak[best]]) best = b;
      states[c] = A.binPeak[best];
      sums.set(A.binSums.subarray(best * GROUP_COUNT, (best + 1) * GROUP_COUNT), c * GROUP_COUNT);
    }
    s0 = exact ? Math.min(s1, last) : s1;
    if (exact && s0 < states[c]) s0 = states[c];
  }
  if (view.matches) foundSums(states, sums);
  return {count, states, sums, exact};
}

// While something is searched for, only what was found has its colours.
function foundSums(states, sums) {
  const now = new Float64Array(GROUP_COUNT), found = view.matches;
  for (let i = 0; i < A.start.length && !A.start[i]; i++) if (found[A.stack[i]]) now[groupOf(i)] += A.size[i];
  for (let c = 0, s = 1; c < states.length; c++) {
    for (; s <= states[c]; s++) {
      const b = begins[s] - 1, e = ends[s] - 1;
      if (b >= 0 && found[A.stack[b]]) now[groupOf(b)] += A.size[b];
      if (e >= 0 && found[A.stack[e]]) now[groupOf(e)] -= A.size[e];
    }
    sums.set(now, c * GROUP_COUNT);
  }
}

const isFound = (i) => !view.matches || view.matches[A.stack[i]];

// Allocations of `least` bytes or more that are alive somewhere in the columns, in order of their start.
function candidates(cols, least) {
  const first = cols.states[0], last = cols.states[cols.count - 1], found = [];
  if (cols.exact) {
    for (let i = 0; i < A.start.length && A.start[i] <= last; i++)
      if (A.end[i] > first && A.size[i] >= least && isFound(i)) found.push(i);
  } else {
    for (const i of A.largest)
      if (A.end[i] > first && A.start[i] <= last && A.size[i] >= least && isFound(i)) found.push(i);
  }
  return found;
}

// Boxes [from column, to column, bytes below, allocation]: within its group each allocation lies on those
// that began before it, and a box ends where it slides down because one below it went.
function boxes(cols, found, least) {
  const lists = Array.from({length: GROUP_COUNT}, () => []);
  const out = [];
  const fromColumn = new Int32Array(found.length).fill(-1), below = new Float64Array(found.length);
  let next = 0, before = -1;
  for (let c = 0; c < cols.count; c++) {
    const s = cols.states[c];
    if (s !== before) {
      for (; next < found.length && A.start[found[next]] <= s; next++)
        if (A.end[found[next]] > s) lists[groupOf(found[next])].push(next);
      let base = 0;
      for (let g = 0; g < GROUP_COUNT; g++) {
        const list = lists[g];
        let kept = 0, y = base;
        for (let k = 0; k < list.length; k++) {
          const slot = list[k], i = found[slot];
          const gone = A.end[i] <= s;
          if (gone || Math.abs(below[slot] - y) > least / 4 || fromColumn[slot] < 0) {
            if (fromColumn[slot] >= 0) out.push([fromColumn[slot], c, below[slot], i]);
            if (gone) continue;
            fromColumn[slot] = c;
            below[slot] = y;
          }
          y += A.size[i];
          list[kept++] = slot;
        }
        list.length = kept;
        base += cols.sums[c * GROUP_COUNT + g];
      }
      before = s;
    }
  }
  for (const list of lists) for (const slot of list) out.push([fromColumn[slot], cols.count, below[slot], found[slot]]);
  return out;
}

// What lies at some bytes above the bottom of a column: {state, group, alloc}, -1 for none. The allocations of a
// group too small to be drawn lie above its others: `small` says how many, and their bytes.
function atPlace(cols, found, column, bytes, least) {
  const s = cols.states[column];
  const hit = {state: s, group: -1, alloc: -1, bytes: 0, small: 0, smallBytes: 0};
  let base = 0, g = 0;
  for (; g < GROUP_COUNT && bytes >= base + cols.sums[column * GROUP_COUNT + g]; g++) base += cols.sums[column * GROUP_COUNT + g];
  if (g === GROUP_COUNT || bytes < 0) return hit;
  hit.group = g;
  hit.bytes = cols.sums[column * GROUP_COUNT + g];
  let y = base;
  for (const i of found) {
    if (groupOf(i) !== g || A.start[i] > s || A.end[i] <= s) continue;
    y += A.size[i];
    if (bytes < y) { hit.alloc = i; return hit; }
  }
  for (let i = 0; i < A.start.length && A.start[i] <= s; i++) {
    if (A.end[i] <= s || A.size[i] >= least || groupOf(i) !== g || !isFound(i)) continue;
    hit.small++;
    hit.smallBytes += A.size[i];
    y += A.size[i];
    if (hit.alloc < 0 && bytes < y) hit.alloc = i;
  }
  return hit;
}

// A round number of bytes at or above, and steps to it.
function niceScale(most) {
  let unit = 1;
  while (unit * 1024 <= most) unit *= 1024;
  for (const power of [1, 10, 100])
    for (const [n, steps] of [[1, 4], [1.25, 5], [1.5, 3], [2, 4], [2.5, 5], [3, 3], [4, 4], [5, 5], [6, 3], [8, 4]])
      if (n * power * unit >= most) return {top: n * power * unit, step: (n * power * unit) / steps};
  return {top: 1024 * unit, step: 256 * unit};
}
