// What is shown: the window, the chosen moment, the search; and colours.
const view = {byTime: false, from: 0, to: 1, state: 0, pinned: -1, matches: null, hover: null};
const HUES = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759", "#76b7b2", "#edc948", "#9c755f", "#ff9da7", "#2f9e8f",
  "#8a6fd1", "#c2803a", "#6aa84f", "#d4659b", "#5b9bd5", "#a5a33b", "#bf5b4b", "#4aa3b5", "#9a8fd0"];
const REST = "#8c96a3";

const colourOfGroup = (g) => (g < GROUP_COUNT - 1 ? HUES[g % HUES.length] : REST);

function mixed(hex, other, share) {
  let out = "#";
  for (let i = 1; i < 7; i += 2) {
    const a = parseInt(hex.slice(i, i + 2), 16), b = parseInt(other.slice(i, i + 2), 16);
    out += Math.round(a + (b - a) * share).toString(16).padStart(2, "0");
  }
  return out;
}
// Three shades of each: neighbours of one colour can be told apart.
const SHADES = [];
for (let g = 0; g < GROUP_COUNT; g++) {
  const colour = colourOfGroup(g);
  SHADES.push([colour, mixed(colour, "#ffffff", 0.16), mixed(colour, "#000000", 0.14)]);
}

const style = {};
function readStyle() {
  const found = getComputedStyle(document.documentElement);
  for (const name of ["back", "panel", "text", "faint", "line", "accent", "oom", "reserved"])
    style[name] = found.getPropertyValue("--" + name).trim();
}

// x: a state's number, or its time.
const xOfState = (state) => (view.byTime ? A.time[Math.min(state, D.states - 1)] : state);
const xEnd = () => (view.byTime ? Math.max(1, A.time[D.states - 1]) * 1.002 : D.states);
function stateAt(x) {
  if (view.byTime) return lastUpTo(A.time, x);
  return Math.min(D.states - 1, Math.max(0, Math.floor(x)));
}

function setWindow(from, to) {
  const end = xEnd(), least = Math.min(end, view.byTime ? 10 : 8);
  let width = Math.min(end, Math.max(least, to - from));
  from = Math.min(Math.max(0, from), end - width);
  view.from = from;
  view.to = from + width;
  redraw();
}

function zoom(factor, at) {
  const width = (view.to - view.from) * factor;
  const share = (at - view.from) / (view.to - view.from);
  setWindow(at - width * share, at - width * share + width);
}

function pan(share) {
  const step = (view.to - view.from) * share;
  setWindow(view.from + step, view.to + step);
}

// The state is brought into the window where it is not.
function choose(state, pinned) {
  view.state = Math.min(D.states - 1, Math.max(0, state));
  view.pinned = pinned === undefined ? view.pinned : pinned;
  const x = xOfState(view.state);
  if (x < view.from || x > view.to) {
    const half = (view.to - view.from) / 2;
    setWindow(x - half, x + half);
  }
  showMoment();
  redraw();
}

// The search, as a mark for each stack; null where nothing is searched for.
function search(text) {
  text = text.trim().toLowerCase();
  if (!text) {
    view.matches = null;
  } else {
    const frames = D.frames.map(([file, line, name]) => (file + ":" + line + " " + name).toLowerCase().includes(text));
    view.matches = Uint8Array.from(D.stacks, (stack) => (stack.some((f) => frames[f]) ? 1 : 0));
    if (D.lines[0][0].includes(text)) view.matches[0] = 1;
  }
  showMoment();
  redraw();
  drawSegments();
}

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; drawTimeline(); });
}

// A canvas as sharp as the screen; its context, in CSS pixels.
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
