// Words: what the mouse is over, what is alive at the chosen moment, what is pinned.
const tip = document.getElementById("tip");

function element(kind, text, name) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function swatch(group) {
  const made = element("span", "", "swatch");
  made.style.background = colourOfGroup(group);
  return made;
}

function calls(stack, most) {
  const list = element("ol", undefined, "calls");
  const own = A.lineOfStack[stack], frames = D.stacks[stack];
  for (const f of frames.slice(0, most)) {
    const [file, line, name] = D.frames[f], [ownFile, ownLine] = D.lines[own];
    list.append(element("li", file + ":" + line + "  " + name, file === ownFile && line === ownLine ? "own" : ""));
  }
  if (frames.length > most) list.append(element("li", "… " + (frames.length - most) + " more", "faint"));
  if (!frames.length) list.append(element("li", "its calls were not recorded", "faint"));
  return list;
}

function title(group, size, line) {
  const head = element("div");
  head.append(swatch(group), element("span", sizeText(size), "big"), element("span", "  " + line));
  return head;
}

function allocation(i, most) {
  const parts = [title(groupOf(i), A.size[i], lineText(lineOf(i), most < 50))];
  parts.push(element("div", "alive from " + lifeText(i) + ", at 0x" + A.address[i].toString(16), "faint"), calls(A.stack[i], most));
  return parts;
}

function block(b, most) {
  const kind = ["free", "in use", "waiting for a stream"][A.blockState[b]];
  const stack = A.blockStack[b], segment = D.segments[A.blockSegment[b]];
  const line = A.blockState[b] ? lineText(A.lineOfStack[stack], most < 50) : "free: nobody holds it";
  const parts = [title(A.blockState[b] ? A.groupOfStack[stack] : GROUP_COUNT - 1, A.blockSize[b], line)];
  const waste = A.blockSize[b] - A.blockRequested[b];
  parts.push(element("div", kind + ", at 0x" + A.blockAddress[b].toString(16) + ", in a " + segment[2] + " segment of " + sizeText(segment[1]) +
    (A.blockState[b] && waste > 0 ? ", " + sizeText(waste) + " of it rounding" : ""), "faint"));
  if (A.blockState[b]) parts.push(calls(stack, most));
  return parts;
}

function small(hit) {
  let count = 0, bytes = 0;
  for (let i = 0; i < A.start.length && A.start[i] <= hit.state; i++)
    if (A.end[i] > hit.state && groupOf(i) === hit.group && A.size[i] < plot.least) { count++; bytes += A.size[i]; }
  const rest = hit.group === GROUP_COUNT - 1;
  const parts = [title(hit.group, hit.bytes, rest ? "all other lines" : lineText(D.groups[hit.group], true))];
  parts.push(element("div", count + " of its allocations are too small to draw here (" + sizeText(bytes) + "): zoom in, or see the table", "faint"));
  return parts;
}

function showTip(parts, x, y) {
  tip.replaceChildren(...parts);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16) + "px";
  tip.style.top = Math.max(4, y + 16 + box.height > innerHeight ? y - box.height - 12 : y + 16) + "px";
}

const hideTip = () => { tip.hidden = true; };

function tipAt(hit, x, y) {
  const now = element("div", momentText(hit.state), "faint");
  if (hit.group < 0) return showTip([now], x, y);
  showTip([...(hit.alloc >= 0 ? allocation(hit.alloc, 6) : small(hit)), now], x, y);
}

const momentText = (s) => (s ? "event " + s.toLocaleString("en") + " (" + timeText(A.time[s]) + ")" : "before the first event") +
  ": " + sizeText(allocated[s]) + " allocated, " + sizeText(reservedAt(s)) + " reserved";

function showPinned(parts) {
  document.getElementById("pinned").replaceChildren(...parts);
}

// What is alive at the chosen moment, line by line.
function showMoment() {
  const s = view.state, bytes = new Float64Array(D.lines.length), counts = new Uint32Array(D.lines.length);
  for (let i = 0; i < A.start.length && A.start[i] <= s; i++) {
    if (A.end[i] <= s || (view.matches && !view.matches[A.stack[i]])) continue;
    bytes[lineOf(i)] += A.size[i];
    counts[lineOf(i)]++;
  }
  const order = Array.from(bytes.keys()).filter((line) => counts[line]).sort((a, b) => bytes[b] - bytes[a]);
  const shown = order.reduce((sum, line) => sum + bytes[line], 0);
  document.getElementById("moment-title").textContent = "Alive at " + momentText(s) + (view.matches ? "; found: " + sizeText(shown) : "");
  const body = document.querySelector("#table tbody");
  const most = order.length ? bytes[order[0]] : 1;
  body.replaceChildren(...order.slice(0, 300).map((line) => {
    const row = element("tr"), bar = element("div", undefined, "bar"), cell = element("td"), where = element("td", lineText(line));
    const group = D.groups.indexOf(line);
    bar.style.width = (100 * bytes[line]) / most + "%";
    bar.style.background = colourOfGroup(group < 0 ? GROUP_COUNT - 1 : group);
    cell.append(element("div"));
    cell.firstChild.append(bar);
    where.title = lineText(line);
    row.append(element("td", sizeText(bytes[line])), cell, element("td", counts[line]), where);
    row.tabIndex = 0;
    row.onclick = () => searchFor(D.lines[line][0] + (line ? ":" + D.lines[line][1] + " " : ""));
    row.onkeydown = (event) => { if (event.key === "Enter") row.onclick(); };
    return row;
  }));
}
