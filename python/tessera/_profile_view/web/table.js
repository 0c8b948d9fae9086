// Sums by name, sorted by any column.
const columns = [
  ["Name", (r) => r[0], (v) => v],
  ["Self CPU", (r) => r[3], timeText],
  ["CPU total", (r) => r[4], timeText],
  ["CPU avg", (r) => r[4] / r[2], timeText],
  ["Self CUDA", (r) => r[5], timeText],
  ["CUDA total", (r) => r[6], timeText],
  ["Self CPU Mem", (r) => r[7], bytesText],
  ["Self CUDA Mem", (r) => r[8], bytesText],
  ["Calls", (r) => r[2], (v) => v],
].filter((c, i) => (i !== 4 && i !== 5) || data.rows.some((r) => r[6] > 0))
  .filter((c) => !c[0].includes("Mem") || (data.memory && data.rows.some((r) => c[1](r) !== 0)));
let sortBy = columns.findIndex((c) => c[0] === "Self CUDA");
if (sortBy < 0) sortBy = 1;
let descending = true;

function drawTable(search) {
  const head = document.querySelector("#table thead");
  const body = document.querySelector("#table tbody");
  head.replaceChildren();
  body.replaceChildren();
  const titles = element("tr", undefined, head);
  columns.forEach(([title], i) => {
    const th = element("th", title + (i === sortBy ? (descending ? " ▾" : " ▴") : ""), titles);
    th.tabIndex = 0;
    th.setAttribute("aria-sort", i === sortBy ? (descending ? "descending" : "ascending") : "none");
    const choose = () => {
      descending = i === sortBy ? !descending : i !== 0;
      sortBy = i;
      drawTable(search);
    };
    th.addEventListener("click", choose);
    th.addEventListener("keydown", (e) => { if (e.key === "Enter") choose(); });
  });
  const value = columns[sortBy][1];
  const rows = data.rows.filter((r) => r[0].toLowerCase().includes(search));
  rows.sort((a, b) => {
    const x = value(a), y = value(b);
    const order = x < y ? -1 : x > y ? 1 : 0;
    return descending ? -order : order;
  });
  for (const r of rows.slice(0, 500)) {
    const tr = element("tr", undefined, body);
    for (const [, get, text] of columns) element("td", text(get(r)), tr);
    tr.firstChild.title = r[0];
    tr.addEventListener("click", () => setSearch(r[0]));
  }
}
