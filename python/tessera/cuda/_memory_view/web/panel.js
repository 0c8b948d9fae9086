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

// All calls, or only the first few of the program's own.
function calls(stack, few) {
  const list = element("ol", undefined, "calls");
  const [ownFile, ownLine] = D.lines[A.lineOfStack[stack]], frames = D.stacks[stack];
  const own = frames.filter((f) => A.ownFrame[f]);
  const shown = few ? (own.length ? own : frames).slice(0, 6) : frames;
  for (const f of shown) {
    const [file, line, name] = D.frames[f];
    const kind = file === ownFile && line === ownLine ? "own" : A.ownFrame[f] ? "" : "faint";
    list.append(element("li", file + ":" + line + "  " + name, kind));
  }
  if (frames.length > shown.length) list.append(element("li", "… " + (frames.length - shown.length) + " more calls: click", "faint"));
  if (!frames.length) list.append(element("li", "its calls were not recorded", "faint"));
  return list;
}

function title(group, size, line) {
  const head = element("div");
  head.append(swatch(group), element("span", sizeText(size), "big"), element("span", "  " + line));
  return head;
}

function allocation(i, few) {
  const parts = [title(groupOf(i), A.size[i], lineText(lineOf(i), few))];
  parts.push(element("div", "alive from " + lifeText(i) + ", at 0x" + A.address[i].toString(16), "faint"), calls(A.stack[i], few));
  return parts;
}

function block(b, few) {
  const kind = ["free", "in use", "waiting for a stream"][A.blockState[b]];
  const stack = A.blockStack[b], segment = D.segments[A.blockSegment[b]];
  const line = A.blockState[b] ? lineText(A.lineOfStack[stack], few) : "free: nobody holds it";
  const parts = [title(A.blockState[b] ? A.groupOfStack[stack] : GROUP_COUNT - 1, A.blockSize[b], line)];
  const waste = A.blockSize[b] - A.blockRequested[b];
  parts.push(element("div", kind + ", at 0x" + A.blockAddress[b].toString(16) + ", in a " + segment[2] + " segment of " + sizeText(segment[1]) +
    (A.blockState[b] && waste > 0 ? ", " + sizeText(waste) + " of it rounding" : ""), "faint"));
  if (A.blockState[b]) parts.push(calls(stack, few));
  return parts;
}

// What was hit, and what it is one of.
function hitText(hit, few) {
  const rest = hit.group === GROUP_COUNT - 1, line = rest ? "all other lines" : lineText(D.groups[hit.group], true);
  const parts = hit.alloc >= 0 ? allocation(hit.alloc, few) : [title(hit.group, hit.bytes, line)];
  const small = hit.small ? "; one of " + hit.small + " here too small to be drawn apart (" + sizeText(hit.smallBytes) + ")" : "";
  parts.push(element("div", (rest ? "Other lines hold " : "This line holds ") + sizeText(hit.bytes) + small, "faint"));
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
  showTip([...hitText(hit, true), now], x, y);
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
