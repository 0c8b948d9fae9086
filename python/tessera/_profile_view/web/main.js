// Hands and keys.
const tip = document.getElementById("tip");
const field = document.getElementById("search");

function describe(i, to) {
  element("div", data.names[data.name[i]], to).className = "big";
  element("div", `${timeText(data.length[i])} from ${timeText(data.start[i])} on, ${data.tracks[data.track[i]].name}`, to).className = "faint";
  const members = data.groups[data.group[i]];
  if (!members) return;
  element("div", `${members.length} operator${members.length > 1 ? "s" : ""}, run together`, to);
  const list = element("ol", undefined, to);
  for (const [name, line] of members.slice(0, 80)) element("li", line ? `${name}   ${line}` : name, list);
}

function pin(i) {
  pinned = i;
  const box = document.getElementById("pinned");
  box.replaceChildren();
  if (i >= 0) describe(i, box);
  draw();
}

function setSearch(text) {
  field.value = text;
  search = text.toLowerCase();
  drawTable(search);
  draw();
}

let drag = null;
canvas.addEventListener("pointerdown", (e) => {
  drag = { x: e.clientX, from, to, moved: false };
  canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener("pointermove", (e) => {
  const box = canvas.getBoundingClientRect();
  if (drag) {
    const by = ((e.clientX - drag.x) / box.width) * (drag.to - drag.from);
    drag.moved = drag.moved || Math.abs(e.clientX - drag.x) > 3;
    if (drag.moved) view(drag.from - by, drag.to - by);
    return;
  }
  const i = eventAt(e.clientX - box.left, e.clientY - box.top);
  if (i !== hovered) {
    hovered = i;
    draw();
  }
  tip.hidden = i < 0;
  if (i < 0) return;
  tip.replaceChildren();
  describe(i, tip);
  tip.style.left = Math.min(e.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(e.clientY + 14, window.innerHeight - tip.offsetHeight - 8) + "px";
});
canvas.addEventListener("pointerup", (e) => {
  const box = canvas.getBoundingClientRect();
  if (drag && !drag.moved) pin(eventAt(e.clientX - box.left, e.clientY - box.top));
  drag = null;
});
canvas.addEventListener("pointerleave", () => {
  tip.hidden = true;
  hovered = -1;
  draw();
});
canvas.addEventListener("wheel", (e) => {
  e.preventDefault();
  const box = canvas.getBoundingClientRect();
  if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) return pan(e.deltaX / box.width);
  zoom(Math.exp(e.deltaY * 0.002), from + ((e.clientX - box.left) / box.width) * (to - from));
}, { passive: false });
canvas.addEventListener("dblclick", (e) => {
  const box = canvas.getBoundingClientRect();
  const i = eventAt(e.clientX - box.left, e.clientY - box.top);
  if (i >= 0) view(data.start[i] - data.length[i] * 0.05, data.start[i] + data.length[i] * 1.05);
});
field.addEventListener("input", () => setSearch(field.value));
document.getElementById("zoom-in").addEventListener("click", () => zoom(0.5));
document.getElementById("zoom-out").addEventListener("click", () => zoom(2));
document.getElementById("all").addEventListener("click", () => view(0, data.duration));
document.addEventListener("keydown", (e) => {
  if (e.target === field) {
    if (e.key === "Escape") setSearch("");
    return;
  }
  const act = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => view(0, data.duration),
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), Escape: () => pin(-1), "/": () => field.focus() }[e.key];
  if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault();
  act();
});
window.addEventListener("resize", draw);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

const said = [`${timeText(data.duration)}, ${data.events} events`];
if (data.leftOut) said.push(`${data.leftOut} of the shortest are not in the picture`);
if (data.dropped) said.push(`${data.dropped} were not recorded`);
if (data.measuredBy) said.push(`device times: ${data.measuredBy}`);
document.getElementById("subtitle").textContent = said.join(" · ");
drawTable("");
draw();
