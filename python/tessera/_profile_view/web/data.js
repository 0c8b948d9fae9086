// The data, and how numbers read.
const data = JSON.parse(document.getElementById("data").textContent);
const count = data.start.length;
const kinds = ["operator", "user", "runtime", "kernel", "copy", "copy", "memory"];

function kindOf(i) {
  return data.names[data.name[i]].startsWith("group::") ? "group" : kinds[data.category[i]];
}

function timeText(ns) {
  if (Math.abs(ns) >= 1e9) return (ns / 1e9).toFixed(3) + " s";
  if (Math.abs(ns) >= 1e6) return (ns / 1e6).toFixed(3) + " ms";
  return (ns / 1e3).toFixed(3) + " us";
}

function bytesText(n) {
  const size = Math.abs(n);
  if (size >= 2 ** 30) return (n / 2 ** 30).toFixed(2) + " GB";
  if (size >= 2 ** 20) return (n / 2 ** 20).toFixed(2) + " MB";
  if (size >= 2 ** 10) return (n / 2 ** 10).toFixed(2) + " KB";
  return n + " B";
}

function element(tag, text, parent) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.append(e);
  return e;
}

// Rows of each track: a thread's scopes lie below each other.
const lanes = data.tracks.map((track) => ({ ...track, depth: 0, events: [] }));
for (let i = 0; i < count; ++i) {
  const lane = lanes[data.track[i]];
  lane.depth = Math.max(lane.depth, data.depth[i] + 1);
  lane.events.push(i);
}
lanes.sort((a, b) => (a.device < 0) === (b.device < 0) ? b.events.length - a.events.length : a.device < 0 ? -1 : 1);
