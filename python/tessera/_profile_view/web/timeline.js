// The timeline: one band for each thread and stream, drawn for the part of time in view.
const canvas = document.getElementById("timeline");
const rowHeight = 17, bandGap = 26;
let from = 0, to = data.duration || 1;
let pinned = -1, hovered = -1, search = "";
let boxes = [];  // of what was drawn: x, y, width, event

// Arrows of each event.
const arrowsOf = new Map();
for (let k = 0; k < data.arrows.length; k += 3)
  for (const i of [data.arrows[k + 1], data.arrows[k + 2]]) {
    if (!arrowsOf.has(i)) arrowsOf.set(i, []);
    arrowsOf.get(i).push(k);
  }

function layout() {
  let y = 22;
  for (const lane of lanes) {
    lane.y = y + bandGap - 8;
    y = lane.y + lane.depth * rowHeight + 6;
  }
  return y + 8;
}

// The first event that may reach into view: those before it have ended. Starts are in order.
function firstIn(lane, time) {
  let low = 0, high = lane.events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (data.start[lane.events[middle]] < time) low = middle + 1; else high = middle;
  }
  return low;
}
for (const lane of lanes) {
  // The latest end among the events up to each one tells how far back one has to look.
  let latest = 0;
  lane.reach = lane.events.map((i) => (latest = Math.max(latest, data.start[i] + data.length[i])));
}

function draw() {
  const width = canvas.clientWidth, height = layout();
  const scale = window.devicePixelRatio || 1;
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  const c = canvas.getContext("2d");
  c.scale(scale, scale);
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue("--" + name);
  const fill = { operator: color("operator"), group: color("group"), user: color("user"),
    runtime: color("runtime"), kernel: color("kernel"), copy: color("copy") };
  const x = (t) => ((t - from) / (to - from)) * width;
  c.font = "11px system-ui, sans-serif";
  c.textBaseline = "middle";
  ruler(c, width, height, x, color);
  boxes = [];
  for (const lane of lanes) {
    c.fillStyle = color("text");
    c.fillText(lane.name, 6, lane.y - 9);
    let k = firstIn(lane, from);
    while (k > 0 && lane.reach[k - 1] > from) --k;
    const drawnTo = new Array(lane.depth).fill(-1);
    for (; k < lane.events.length; ++k) {
      const i = lane.events[k];
      if (data.start[i] > to) break;
      const left = Math.max(0, x(data.start[i]));
      const right = Math.min(width, x(data.start[i] + data.length[i]));
      const d = data.depth[i];
      if (right < 0 || right <= drawnTo[d] + 0.3) continue;  // within a pixel that has something
      const w = Math.max(right - left, 0.7);
      drawnTo[d] = left + w;
      const y = lane.y + d * rowHeight;
      const name = data.names[data.name[i]];
      c.globalAlpha = search && !name.toLowerCase().includes(search) ? 0.18 : 1;
      c.fillStyle = fill[kindOf(i)] || fill.operator;
      c.fillRect(left, y, w, rowHeight - 2);
      if (i === pinned || i === hovered) {
        c.strokeStyle = color("text");
        c.strokeRect(left + 0.5, y + 0.5, Math.max(w - 1, 1), rowHeight - 3);
      }
      if (w > 34) {
        c.fillStyle = color("text");
        c.save();
        c.beginPath();
        c.rect(left, y, w - 3, rowHeight);
        c.clip();
        c.fillText(name, left + 4, y + rowHeight / 2 - 1);
        c.restore();
      }
      boxes.push([left, y, w, i]);
    }
  }
  c.globalAlpha = 1;
  for (const i of new Set([pinned, hovered])) drawArrows(c, i, x, color("accent"));
}

function ruler(c, width, height, x, color) {
  const wanted = (to - from) / (width / 110);
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted) || power * 10;
  c.fillStyle = color("faint");
  c.strokeStyle = color("line");
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const at = Math.round(x(t)) + 0.5;
    c.beginPath();
    c.moveTo(at, 0);
    c.lineTo(at, height);
    c.stroke();
    c.fillText(timeText(t), at + 3, 9);
  }
}

function drawArrows(c, i, x, color) {
  c.strokeStyle = color;
  const middle = (e) => {
    const lane = lanes.find((l) => data.tracks[data.track[e]].name === l.name);
    return lane.y + data.depth[e] * rowHeight + rowHeight / 2;
  };
  for (const k of arrowsOf.get(i) || []) {
    const a = data.arrows[k + 1], b = data.arrows[k + 2];
    const x1 = x(data.start[a]), x2 = x(data.start[b]), y1 = middle(a), y2 = middle(b);
    c.beginPath();
    c.moveTo(x1, y1);
    c.bezierCurveTo((x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2, y2);
    c.stroke();
  }
}

function eventAt(px, py) {
  for (let k = boxes.length; k-- > 0;) {
    const [left, y, w, i] = boxes[k];
    if (px >= left - 1 && px <= left + w + 1 && py >= y && py < y + rowHeight) return i;
  }
  return -1;
}

function view(a, b) {
  const span = Math.min(Math.max(b - a, 20), data.duration || 1);
  from = Math.min(Math.max(a, 0), (data.duration || 1) - span);
  to = from + span;
  draw();
}
function zoom(factor, at = (from + to) / 2) { view(at - (at - from) * factor, at + (to - at) * factor); }
function pan(part) { view(from + (to - from) * part, to + (to - from) * part); }
