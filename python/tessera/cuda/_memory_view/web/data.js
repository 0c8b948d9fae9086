// The data as arrays, and what is asked of it. States: 0 is before the first event, s after event s - 1.
const D = JSON.parse(document.getElementById("data").textContent);
document.getElementById("data").textContent = "";
const KINDS = {d: Float64Array, I: Uint32Array, B: Uint8Array};
const GROUP_COUNT = D.groups.length + 1;
let A = null;         // the arrays by name
let allocated = null; // bytes in each state
let begins = null, ends = null;  // number + 1 of the allocation that a state begins, ends

async function unpack() {
  const text = atob(D.bytes);
  D.bytes = "";
  const deflated = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) deflated[i] = text.charCodeAt(i);
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  A = {};
  for (const [name, [kind, at, length]] of Object.entries(D.arrays)) A[name] = new KINDS[kind](buffer, at, length);
  const n = D.states;
  begins = new Uint32Array(n);
  ends = new Uint32Array(n + 1);
  const delta = new Float64Array(n + 1);
  for (let i = 0; i < A.start.length; i++) {
    if (A.start[i]) begins[A.start[i]] = i + 1;
    ends[A.end[i]] = i + 1;
    delta[A.start[i]] += A.size[i];
    delta[A.end[i]] -= A.size[i];
  }
  allocated = new Float64Array(n);
  for (let s = 0, now = 0; s < n; s++) allocated[s] = now += delta[s];
}

const groupOf = (i) => A.groupOfStack[A.stack[i]];
const lineOf = (i) => A.lineOfStack[A.stack[i]];

// The last of ascending values that is not beyond x; 0 where all are.
function lastUpTo(values, x) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= x) low = middle + 1; else high = middle;
  }
  return Math.max(0, low - 1);
}

const reservedAt = (state) => A.reserved[lastUpTo(A.reservedAt, state)];

// Bytes of each group in a state: from the nearest bin behind it, event by event.
function groupSums(from, to, sums) {
  for (let s = from + 1; s <= to; s++) {
    if (begins[s]) sums[groupOf(begins[s] - 1)] += A.size[begins[s] - 1];
    if (ends[s]) sums[groupOf(ends[s] - 1)] -= A.size[ends[s] - 1];
  }
}

// A state and the sums there, at or before the one asked for.
function checkpoint(state, sums) {
  const bin = lastUpTo(A.binPeak, state);
  if (A.binPeak[bin] <= state) {
    for (let g = 0; g < GROUP_COUNT; g++) sums[g] = A.binSums[bin * GROUP_COUNT + g];
    return A.binPeak[bin];
  }
  sums.fill(0);
  for (let i = 0; i < A.start.length && !A.start[i]; i++) sums[groupOf(i)] += A.size[i];
  return 0;
}

function sizeText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit + 1 < units.length) { bytes /= 1024; unit++; }
  return (unit ? bytes.toFixed(bytes < 10 ? 2 : 1) : bytes.toFixed(0)) + " " + units[unit];
}

function timeText(us) {
  if (Math.abs(us) < 1000) return us.toFixed(0) + " µs";
  if (Math.abs(us) < 1e6) return (us / 1000).toFixed(2) + " ms";
  return (us / 1e6).toFixed(3) + " s";
}

function lineText(line, short) {
  const [file, number, name] = D.lines[line];
  if (!number && !name) return file;
  const place = short ? file.split("/").slice(-2).join("/") : file;
  return place + ":" + number + (name && name !== "<module>" ? "  " + name : "");
}

function lifeText(i) {
  const begin = A.start[i], end = A.end[i];
  const from = begin ? "event " + begin : "before the recording";
  const to = end < D.states ? "event " + end : "the end";
  const last = Math.min(end, D.states - 1);
  return from + " to " + to + ", " + timeText(A.time[last] - A.time[begin]);
}
