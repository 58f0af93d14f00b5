"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("page-data").textContent);
  const charts = [...document.querySelectorAll(".chart")];
  const views = new Map(); // of the charts that are drawn
  const hidden = new Set(); // labels of the runs that the legend has switched off
  const options = {
    actions: false,
    ast: true, // expressions are interpreted, so that the page can forbid eval
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
  };
  // Dragging moves a chart, the wheel with Shift zooms, two clicks undo both. A finger scrolls the page.
  const fine = matchMedia("(pointer: fine)").matches;
  const zoom = { name: "zoom", select: { type: "interval", zoom: "wheel![event.shiftKey]" }, bind: "scales" };
  let axis = document.querySelector("input[name=axis]:checked")?.value; // seconds, or what else there is

  // The ends of y that hold what matters of the runs that are shown: as charts.py has it.
  function follow(view, spans) {
    const ends = Object.entries(spans).filter(([run]) => !hidden.has(run)).flatMap(([, span]) => span);
    if (!ends.length) return;
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const room = 0.06 * Math.max(high - low, 1e-4);
    view.signal("low", low - room).signal("high", high + room);
  }

  function show(chart) {
    const view = views.get(chart);
    const spans = specs[chart.dataset.chart].usermeta?.spans;
    if (spans) follow(view, spans);
    return view.signal("hidden", [...hidden]).runAsync();
  }

  async function draw(chart) {
    const spec = structuredClone(specs[chart.dataset.chart]);
    const seconds = spec.usermeta?.seconds;
    if (seconds && axis === "seconds") spec.encoding.x = seconds;
    if (fine) spec.layer.find((layer) => layer.name === "pointer" && spec.encoding.y.type === "quantitative")?.params.push(zoom);
    views.get(chart)?.finalize();
    const { view } = await vegaEmbed(chart, spec, options);
    views.set(chart, view);
    await show(chart);
    chart.dataset.drawn = axis ?? "once";
  }

  // How far a chart is from what the reader sees: the nearest are drawn first.
  function away(chart) {
    const { top, bottom } = chart.getBoundingClientRect();
    return Math.max(top - innerHeight, -bottom, 0);
  }

  let turn = 0;
  async function drawAll(some) {
    const own = ++turn;
    const order = new Map(some.map((chart) => [chart, away(chart)]));
    for (const chart of [...some].sort((a, b) => order.get(a) - order.get(b))) {
      await draw(chart);
      if (own !== turn) return; // the reader has chosen something else
    }
  }

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const off = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!off));
      hidden[off ? "add" : "delete"](button.dataset.run);
      for (const chart of views.keys()) show(chart);
    });
  }

  for (const input of document.querySelectorAll("input[name=axis]")) {
    input.addEventListener("change", () => {
      axis = input.value;
      drawAll(charts.filter((chart) => !views.has(chart) || specs[chart.dataset.chart].usermeta?.seconds));
    });
  }

  // Numbers by value, words by alphabet; rows without a value stay last.
  function sortBy(header) {
    const row = header.parentElement;
    const place = [...row.children].indexOf(header);
    const current = header.getAttribute("aria-sort");
    const other = { ascending: "descending", descending: "ascending" };
    const direction = current ? other[current] : header.dataset.first;
    for (const cell of row.children) cell.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const body = row.closest("table").tBodies[0];
    const value = (line) => line.children[place].dataset.value;
    const compare = (a, b) => {
      if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
      return sign * ((place && Number(a) - Number(b)) || a.localeCompare(b));
    };
    body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b))));
  }

  for (const button of document.querySelectorAll(".sortable thead button")) {
    button.addEventListener("click", () => sortBy(button.parentElement));
  }

  // Paper is light and narrow: charts take the width that they then have.
  function paper(begins) {
    document.documentElement.classList.toggle("printing", begins);
    for (const [chart, view] of views) view.width(chart.clientWidth).run();
  }
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));

  drawAll(charts);
})();
