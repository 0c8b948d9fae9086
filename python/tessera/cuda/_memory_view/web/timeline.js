// The timeline and the small picture of all of it below.
const plot = {left: 76, right: 10, top: 22, bottom: 24, cols: null, found: [], scale: null, least: 0, frame: 0};
const timeline = document.getElementById("timeline"), overview = document.getElementById("overview");

function drawTimeline() {
  const began = performance.now();
  const context = prepare(timeline);
  const width = timeline.clientWidth - plot.left - plot.right;
  const height = timeline.clientHeight - plot.top - plot.bottom;
  const count = Math.max(1, Math.floor(width));
  const cols = columns(count);
  let most = 1;
  for (let c = 0; c < count; c++) most = Math.max(most, allocated[cols.states[c]]);
  const r0 = lastUpTo(A.reservedAt, cols.states[0]), r1 = lastUpTo(A.reservedAt, cols.states[count - 1]);
  for (let r = r0; r <= r1; r++) most = Math.max(most, A.reserved[r]);
  const scale = niceScale(most * 1.03);
  const perByte = height / scale.top, bottom = plot.top + height;
  const least = 1.5 / perByte;
  const found = candidates(cols, least);
  Object.assign(plot, {cols, found, scale, least, perByte, bottomY: bottom, columnWidth: width / count});
  drawGrid(context, scale, width, height);
  context.save();
  context.beginPath();
  context.rect(plot.left, 0, width, bottom + 1);
  context.clip();
  drawBands(context, cols, bottom);
  drawBoxes(context, boxes(cols, found, least), bottom);
  drawReserved(context, cols, bottom, r0, r1);
  drawMarks(context, height);
  context.restore();
  drawOverview();
  plot.frame = performance.now() - began;
}

const xOfColumn = (c) => plot.left + c * plot.columnWidth;
const pixelOf = (x) => plot.left + ((x - view.from) / (view.to - view.from)) * plot.columnWidth * plot.cols.count;

function drawGrid(context, scale, width, height) {
  context.font = "11px system-ui, sans-serif";
  context.lineWidth = 1;
  context.textBaseline = "middle";
  for (let value = 0; value <= scale.top * 1.0001; value += scale.step) {
    const y = Math.round(plot.top + height - value * plot.perByte) + 0.5;
    context.strokeStyle = style.line;
    context.beginPath();
    context.moveTo(plot.left, y);
    context.lineTo(plot.left + width, y);
    context.stroke();
    context.fillStyle = style.faint;
    context.textAlign = "right";
    context.fillText(sizeText(value).replace(/\.0+ /, " "), plot.left - 8, y);
  }
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  const span = view.to - view.from, rough = span / Math.max(2, width / 130);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((n) => n * power >= rough) * power);
  for (let x = Math.ceil(view.from / step) * step; x <= view.to; x += step) {
    const px = plot.left + ((x - view.from) / span) * width;
    if (px < plot.left + 20 || px > plot.left + width - 20) continue;
    context.fillStyle = style.faint;
    context.fillText(view.byTime ? timeText(x) : x.toLocaleString("en"), px, plot.top + height + 16);
    context.fillRect(px, plot.top + height, 1, 4);
  }
}

// Each group as the area up to its top, the highest first: what lies below covers the rest of it.
function drawBands(context, cols, bottom) {
  if (view.matches) drawOthers(context, cols, bottom);
  const tops = new Float64Array(cols.count);
  for (let c = 0; c < cols.count; c++) for (let g = 0; g < GROUP_COUNT; g++) tops[c] += cols.sums[c * GROUP_COUNT + g];
  for (let g = GROUP_COUNT - 1; g >= 0; g--) {
    context.beginPath();
    context.moveTo(plot.left, bottom);
    let any = false, y = bottom;
    for (let c = 0; c < cols.count; c++) {
      const sum = cols.sums[c * GROUP_COUNT + g];
      if (sum > 0) any = true;
      const here = bottom - Math.max(0, tops[c]) * plot.perByte;
      if (here !== y) {
        context.lineTo(xOfColumn(c), y);
        context.lineTo(xOfColumn(c), here);
        y = here;
      }
      tops[c] -= sum;
    }
    context.lineTo(xOfColumn(cols.count), y);
    context.lineTo(xOfColumn(cols.count), bottom);
    if (!any) continue;
    context.fillStyle = mixed(colourOfGroup(g), style.back, 0.12);
    context.fill();
  }
}

// What a search did not find: above what it found, faint.
function drawOthers(context, cols, bottom) {
  context.fillStyle = mixed(style.back, REST, 0.25);
  for (let c = 0; c < cols.count; c++) {
    const tall = allocated[cols.states[c]] * plot.perByte;
    context.fillRect(xOfColumn(c), bottom - tall, plot.columnWidth + 0.5, tall);
  }
}

function drawBoxes(context, all, bottom) {
  const byColour = new Map();
  for (const box of all) {
    const i = box[3];
    const key = groupOf(i) * 3 + (i % 3);
    if (!byColour.has(key)) byColour.set(key, []);
    byColour.get(key).push(box);
  }
  for (const [key, list] of byColour) {
    context.fillStyle = SHADES[Math.floor(key / 3)][key % 3];
    for (const [from, to, below, i] of list) {
      const x = xOfColumn(from), tall = A.size[i] * plot.perByte;
      const gap = tall > 4 ? 1 : tall > 2.5 ? 0.5 : 0;
      context.fillRect(x, bottom - below * plot.perByte - tall + gap, xOfColumn(to) - x, tall - gap);
    }
  }
  for (const [i, colour] of [[view.pinned, style.text], [view.hover ? view.hover.alloc : -1, style.accent]]) {
    if (i < 0) continue;
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    for (const [from, to, below, j] of all) {
      if (j !== i) continue;
      const tall = A.size[i] * plot.perByte;
      context.strokeRect(xOfColumn(from), bottom - below * plot.perByte - tall, xOfColumn(to) - xOfColumn(from), tall);
    }
  }
}

// Its highest in each column.
function drawReserved(context, cols, bottom, r, last) {
  context.strokeStyle = style.reserved;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let c = 0; c < cols.count; c++) {
    const until = cols.states[c];
    let value = A.reserved[r];
    while (r < last && A.reservedAt[r + 1] <= until) value = Math.max(value, A.reserved[++r]);
    const y = bottom - value * plot.perByte;
    if (c) context.lineTo(xOfColumn(c), y); else context.moveTo(xOfColumn(c), y);
    context.lineTo(xOfColumn(c + 1), y);
  }
  context.stroke();
}

function vertical(context, x, colour, dash, height) {
  context.strokeStyle = colour;
  context.setLineDash(dash);
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, plot.top - 4);
  context.lineTo(x, plot.top + height);
  context.stroke();
  context.setLineDash([]);
}

function drawMarks(context, height) {
  const inside = (state) => xOfState(state) >= view.from && xOfState(state) <= view.to;
  let drawn = -1;
  for (const state of D.marks) {
    const x = Math.round(pixelOf(xOfState(state))) + 0.5;
    if (inside(state) && x !== drawn) vertical(context, x, style.faint, [4, 3], height);
    drawn = x;
  }
  let free = -1e9;
  context.font = "11px system-ui, sans-serif";
  for (const oom of D.ooms) {
    if (!inside(oom.state)) continue;
    const x = Math.round(pixelOf(xOfState(oom.state))) + 0.5;
    vertical(context, x, style.oom, [], height);
    const label = "out of memory: " + sizeText(oom.asked) + " asked", wide = context.measureText(label).width;
    const right = x + wide + 8 > timeline.clientWidth - plot.right;
    if (x - (right ? wide : 0) < free) continue;
    context.fillStyle = style.oom;
    context.textAlign = right ? "right" : "left";
    context.fillText(label, x + (right ? -4 : 4), plot.top - 8);
    free = x + (right ? 4 : wide + 12);
  }
  if (inside(view.state)) vertical(context, Math.round(pixelOf(xOfState(view.state))) + 0.5, style.accent, [2, 2], height);
}

// All of it, from the bins where there are many events, with the window.
function drawOverview() {
  const context = prepare(overview), width = overview.clientWidth - plot.left - plot.right, height = overview.clientHeight;
  const most = Math.max(1, allocated[D.peak]), end = xEnd();
  const high = new Float64Array(Math.max(1, Math.ceil(width)));
  const each = D.states > 32768 ? D.binWidth : 1;
  for (let first = 0; first < D.states; first += each) {
    const value = allocated[each === 1 ? first : A.binPeak[first / each]], next = Math.min(D.states, first + each);
    const from = Math.floor((xOfState(first) / end) * width), to = Math.floor((xOfState(next) / end) * width);
    for (let x = from; x <= Math.min(to, high.length - 1); x++) high[x] = Math.max(high[x], value);
  }
  context.fillStyle = mixed(style.accent, style.back, 0.55);
  for (let x = 0; x < high.length; x++) {
    const tall = (high[x] / most) * (height - 4);
    context.fillRect(plot.left + x, height - tall, 1, tall);
  }
  context.fillStyle = style.oom;
  for (const oom of D.ooms) context.fillRect(plot.left + (xOfState(oom.state) / end) * width, 0, 1.5, height);
  const from = plot.left + (view.from / end) * width, to = plot.left + (view.to / end) * width;
  context.strokeStyle = style.accent;
  context.lineWidth = 1.5;
  context.strokeRect(from + 0.5, 1, Math.max(3, to - from - 1), height - 2);
}
