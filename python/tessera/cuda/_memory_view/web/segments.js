// The address space at the end: segments in order of address, broken into rows, holes left open.
const space = {rows: [], pieces: []};
const segmentCanvas = document.getElementById("segments");

function drawSegments() {
  const width = segmentCanvas.clientWidth, gap = 3, tall = 26, lead = 4;
  const order = D.segments.map((s, i) => i).sort((a, b) => D.segments[a][0] - D.segments[b][0]);
  const total = order.reduce((sum, s) => sum + D.segments[s][1], 0);
  document.getElementById("segment-section").hidden = !total;
  if (!total) return;
  const rows = Math.min(12, Math.max(2, Math.ceil(order.length / 24)));
  const perByte = (width * rows * 0.97 - gap * order.length) / total > 0 ? (width * rows * 0.97 - gap * order.length) / total : (width * rows) / total;
  // Every segment takes what it needs; one that reaches the edge goes on in the next row.
  const place = new Float64Array(D.segments.length);
  let at = 0;
  for (const s of order) { place[s] = at; at += D.segments[s][1] * perByte + gap; }
  const used = Math.ceil(at / width);
  segmentCanvas.style.height = used * (tall + 8) + lead + "px";
  const context = prepare(segmentCanvas);
  space.pieces = [];
  const put = (from, to, draw, what) => {
    for (let row = Math.floor(from / width); row * width < to; row++) {
      const x0 = Math.max(from, row * width) - row * width, x1 = Math.min(to, (row + 1) * width) - row * width;
      const y = lead + row * (tall + 8);
      draw(x0, x1, y);
      if (what !== undefined) space.pieces.push([row, x0, x1, what]);
    }
  };
  for (const s of order) {
    const from = place[s], to = from + D.segments[s][1] * perByte;
    put(from, to, (x0, x1, y) => {
      context.fillStyle = style.panel;
      context.fillRect(x0, y, x1 - x0, tall);
      context.strokeStyle = style.faint;
      context.lineWidth = 1;
      context.strokeRect(x0 + 0.5, y - 0.5, Math.max(0, x1 - x0 - 1), tall + 1);
    });
  }
  for (let b = 0; b < A.blockSize.length; b++) {
    const s = A.blockSegment[b];
    const from = place[s] + (A.blockAddress[b] - D.segments[s][0]) * perByte;
    const kind = A.blockState[b], stack = A.blockStack[b], group = A.groupOfStack[stack];
    const dim = view.matches && !view.matches[stack];
    put(from, from + A.blockSize[b] * perByte, (x0, x1, y) => {
      if (kind === 0) {
        context.strokeStyle = style.line;
        context.lineWidth = 1;
        context.beginPath();
        for (let x = Math.ceil(x0 / 7) * 7; x < x1; x += 7) { context.moveTo(x, y + tall - 2); context.lineTo(Math.min(x1, x + 6), y + 2); }
        context.stroke();
        return;
      }
      context.fillStyle = kind === 2 ? style.faint : SHADES[group][b % 3];
      context.globalAlpha = dim ? 0.18 : 1;
      const wide = x1 - x0;
      context.fillRect(x0, y + 1, wide > 3 ? wide - 0.7 : Math.max(0.4, wide), tall - 2);
      context.globalAlpha = 1;
    }, b);
  }
  space.width = width;
  space.pitch = tall + 8;
  space.lead = lead;
}

function blockAt(x, y) {
  const row = Math.floor((y - space.lead) / space.pitch);
  let nearest = -1, least = 3;
  for (const [r, x0, x1, b] of space.pieces) {
    if (r !== row) continue;
    if (x >= x0 && x < x1) return b;
    const away = Math.min(Math.abs(x - x0), Math.abs(x - x1));
    if (away < least) { least = away; nearest = b; }
  }
  return nearest;
}

// The allocation that a block of the end is, or -1.
function allocOfBlock(b) {
  for (let i = A.start.length - 1; i >= 0; i--)
    if (A.address[i] === A.blockAddress[b] && A.end[i] === D.states) return i;
  return -1;
}
