"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("page-data").textContent);
  const charts = [...document.querySelectorAll(".chart")];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)").matches; // a finger: it scrolls, and cannot hover
  const config = {
    displayModeBar: coarse ? false : "hover",
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]], // none that could send data away
  };
  const MANY = 12; // charts, which take longer to draw than a reader likes to wait
  const hidden = new Set(); // places of the runs that the legend has switched off
  let axis = document.querySelector("input[name=axis]:checked")?.value; // seconds, or what else there is
  let printing = false;

  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // The axis of a chart whose traces say which of their values matter most: those of the runs shown.
  function withRoom(low, high, least) {
    const room = 0.06 * Math.max(high - low, least);
    return [low - room, high + room];
  }

  // A chart is drawn anew from its figure and from what the reader chose.
  function draw(chart) {
    const figure = structuredClone(figures[chart.dataset.figure]);
    const { data, layout } = figure;
    for (const trace of data) {
      const own = colour(`--run-${trace.meta.run}`);
      trace.visible = !hidden.has(trace.meta.run);
      for (const part of [trace.marker, trace.line, trace.error_y]) if (part) part.color = own;
      if (trace.type === "bar") trace.insidetextfont = { color: colour("--card"), size: 11 };
    }
    const kind = layout.meta?.seconds_axis;
    if (kind && axis === "seconds") {
      for (const trace of data) trace.x = trace.customdata.map(([, seconds]) => seconds);
      layout.xaxis = { automargin: true, showgrid: false, zeroline: false, type: kind };
      layout.xaxis.title = { text: kind === "log" ? "seconds of training (logarithmic)" : "seconds of training" };
      if (kind === "linear") layout.xaxis.rangemode = "tozero";
    }
    const spans = data.filter((trace) => trace.visible && trace.meta.span).flatMap((trace) => trace.meta.span);
    if (spans.length) layout.yaxis.range = withRoom(Math.min(...spans), Math.max(...spans), layout.meta.least_span);
    layout.uirevision = axis; // zoom and pan stay when a run is hidden or the colours change
    layout.font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--muted") };
    layout.hoverlabel = {
      bgcolor: colour("--card"),
      bordercolor: colour("--line"),
      font: { color: colour("--text") },
    };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: colour("--line"), activecolor: colour("--muted") };
    for (const side of [layout.xaxis, layout.yaxis]) side.gridcolor = colour("--grid");
    for (const shape of layout.shapes ?? []) shape.line.color = colour("--muted");
    layout.dragmode = coarse ? false : "zoom";
    if (printing) layout.width = chart.clientWidth; // the printer does not wait for a resize
    return Plotly.react(chart, data, layout, config);
  }

  // How far a chart is from what the reader sees.
  function away(chart) {
    const { top, bottom } = chart.getBoundingClientRect();
    return Math.max(top - innerHeight, -bottom, 0);
  }

  // Of many charts the nearest come first, and the page answers between them.
  let turn = 0;
  async function drawAll() {
    const own = ++turn;
    const order = new Map(charts.map((chart) => [chart, away(chart)]));
    for (const chart of [...charts].sort((a, b) => order.get(a) - order.get(b))) {
      draw(chart);
      if (charts.length > MANY && !printing) await new Promise((next) => setTimeout(next));
      if (own !== turn) return; // the reader has chosen something else
    }
  }

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const run = Number(button.dataset.run);
      if (!hidden.delete(run)) hidden.add(run);
      button.setAttribute("aria-pressed", String(!hidden.has(run)));
      drawAll();
    });
  }

  for (const input of document.querySelectorAll("input[name=axis]")) {
    input.addEventListener("change", () => {
      axis = input.value;
      drawAll();
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

  // Paper is light and narrow.
  function paper(begins) {
    printing = begins;
    document.documentElement.classList.toggle("printing", printing);
    drawAll();
  }
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));

  dark.addEventListener("change", drawAll);
  drawAll();
})();
