// Mouse, keys and buttons.
const box = document.getElementById("search");

function searchFor(text) {
  box.value = box.value === text ? "" : text;
  search(box.value);
}

function hitAt(event) {
  const place = timeline.getBoundingClientRect();
  const column = Math.floor((event.clientX - place.left - plot.left) / plot.columnWidth);
  if (column < 0 || column >= plot.cols.count) return null;
  return atPlace(plot.cols, plot.found, column, (plot.bottomY - (event.clientY - place.top)) / plot.perByte, plot.least);
}

const xAt = (clientX) =>
  view.from + ((clientX - timeline.getBoundingClientRect().left - plot.left) / (plot.columnWidth * plot.cols.count)) * (view.to - view.from);

function listen() {
  let drag = null;
  timeline.addEventListener("pointerdown", (event) => {
    drag = {x: event.clientX, from: view.from, to: view.to, moved: false};
    timeline.setPointerCapture(event.pointerId);
  });
  timeline.addEventListener("pointermove", (event) => {
    if (drag) {
      if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
      const step = ((drag.x - event.clientX) / (plot.columnWidth * plot.cols.count)) * (drag.to - drag.from);
      if (drag.moved) { hideTip(); setWindow(drag.from + step, drag.to + step); }
      return;
    }
    const hit = hitAt(event);
    const changed = (hit ? hit.alloc : -1) !== (view.hover ? view.hover.alloc : -1);
    view.hover = hit;
    if (hit) tipAt(hit, event.clientX, event.clientY); else hideTip();
    if (changed) redraw();
  });
  timeline.addEventListener("pointerup", (event) => {
    const click = drag && !drag.moved;
    drag = null;
    const hit = click ? hitAt(event) : null;
    if (!hit) return;
    choose(hit.state, hit.alloc);
    if (hit.group >= 0) showPinned(hitText(hit, false));
  });
  timeline.addEventListener("pointerleave", () => { view.hover = null; hideTip(); redraw(); });
  timeline.addEventListener("wheel", (event) => {
    event.preventDefault();
    hideTip();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / 800);
    else zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 350), xAt(event.clientX));
  }, {passive: false});
  timeline.addEventListener("dblclick", (event) => zoom(0.25, xAt(event.clientX)));
  const jump = (event) => {
    const place = overview.getBoundingClientRect(), width = place.width - plot.left - plot.right;
    const x = ((event.clientX - place.left - plot.left) / width) * xEnd(), half = (view.to - view.from) / 2;
    setWindow(x - half, x + half);
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); jump(event); });
  overview.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  segmentCanvas.addEventListener("pointermove", (event) => {
    const b = blockAt(event.offsetX, event.offsetY);
    if (b < 0) hideTip(); else showTip(block(b, true), event.clientX, event.clientY);
  });
  segmentCanvas.addEventListener("pointerleave", hideTip);
  segmentCanvas.addEventListener("click", (event) => {
    const b = blockAt(event.offsetX, event.offsetY);
    if (b < 0) return;
    showPinned(block(b, false));
    if (A.blockState[b] === 1) { view.pinned = allocOfBlock(b); redraw(); }
  });
  box.addEventListener("input", () => search(box.value));
  document.addEventListener("keydown", key);
  const press = (id, action) => { document.getElementById(id).onclick = action; };
  const middle = () => (view.from + view.to) / 2;
  press("zoom-in", () => zoom(0.5, middle()));
  press("zoom-out", () => zoom(2, middle()));
  press("all", () => setWindow(0, xEnd()));
  press("peak", () => choose(D.peak));
  press("axis", (event) => {
    const first = stateAt(view.from), last = stateAt(view.to), whole = view.to - view.from >= xEnd() * 0.999;
    view.byTime = !view.byTime;
    event.target.textContent = view.byTime ? "by time" : "by event";
    event.target.setAttribute("aria-pressed", view.byTime);
    if (whole) setWindow(0, xEnd()); else setWindow(xOfState(first), xOfState(last));
  });
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === box) {
    if (event.key === "Escape") { searchFor(box.value); timeline.focus(); }
    return;
  }
  const middle = (view.from + view.to) / 2;
  const actions = {
    ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), PageUp: () => pan(-0.8), PageDown: () => pan(0.8),
    "+": () => zoom(0.6, middle), "=": () => zoom(0.6, middle), "-": () => zoom(1 / 0.6, middle),
    0: () => setWindow(0, xEnd()), Home: () => setWindow(0, view.to - view.from), End: () => setWindow(xEnd(), xEnd() + view.to - view.from),
    p: () => choose(D.peak), ",": () => choose(view.state - 1), ".": () => choose(view.state + 1), "/": () => box.focus(),
    Escape: () => { view.pinned = -1; hideTip(); if (box.value) searchFor(box.value); redraw(); },
  };
  const canvasOnly = ["PageUp", "PageDown", "Home", "End", "ArrowLeft", "ArrowRight"].includes(event.key) && event.target !== timeline;
  if (!actions[event.key] || canvasOnly || event.target.tagName === "INPUT") return;
  event.preventDefault();
  actions[event.key]();
}

function start() {
  readStyle();
  const events = D.states - 1;
  document.getElementById("subtitle").textContent = D.name + ", device " + D.device + ", " + events.toLocaleString("en") +
    " events, peak " + sizeText(allocated[D.peak]);
  listen();
  view.to = xEnd();
  choose(D.peak);
  drawTimeline();
  drawSegments();
  new ResizeObserver(() => { redraw(); drawSegments(); }).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readStyle(); redraw(); drawSegments(); });
  if (D.focus === "segments") document.getElementById("segment-section").scrollIntoView();
  if (events < 1) document.getElementById("summary").open = true;
  window.tesseraMemory = {view, plot, setWindow, zoom, draw: drawTimeline, hitAt, showMoment, choose, search};
}

unpack().then(start, (error) => {
  document.getElementById("summary").open = true;
  document.getElementById("subtitle").textContent = "this browser cannot show the pictures: " + error;
});
