// Plots as SVG, with the colours and dashes of the pictures that `pagoda replay --plot` and
// `pagoda eval --plot` write (src/terminal/plot.cc).
import { make } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 480;
const HEIGHT = 230;
const FIELD = { left: 52, right: 446, top: 10, bottom: 200 };
const STEPS_WANTED = 4;
// Told apart by colour-blind readers too; the last is the colour of text, in the dark as well.
const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "currentColor"];
const DASHES = ["none", "9 6", "2 5", "12 4 3 4"];

const colourOf = (index) => COLOURS[index % COLOURS.length];
const lookOf = (index) => ({
  stroke: colourOf(index),
  "stroke-width": 2,
  "stroke-dasharray": DASHES[index % DASHES.length],
});

function svg(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

// The least of 1, 2 and 5 times a power of ten that is not below `least`.
function roundStep(least) {
  if (!(least > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * (1 - 1e-9));
}

class Field {
  constructor({ lines, ticks, logarithmic = false, high = 0 }) {
    const points = lines.flatMap((line) => line.points.filter(Boolean));
    const xs = [...points.map((point) => point.x), ...ticks.map((tick) => tick.x)];
    this.place = logarithmic ? Math.log2 : (x) => x;
    this.low = this.place(xs.reduce((a, b) => Math.min(a, b), Infinity));
    this.span = this.place(xs.reduce((a, b) => Math.max(a, b), -Infinity)) - this.low;
    const highest = points.reduce((most, point) => Math.max(most, point.y), high);
    this.step = roundStep(highest / STEPS_WANTED);
    this.steps = Math.max(1, Math.ceil(highest / this.step - 1e-9));
  }

  x(value) {
    const share = this.span > 0 ? (this.place(value) - this.low) / this.span : 0.5;
    return FIELD.left + share * (FIELD.right - FIELD.left);
  }

  y(value) {
    return FIELD.bottom - (FIELD.bottom - FIELD.top) * (value / (this.step * this.steps));
  }
}

function axes(plot, field) {
  const parts = [];
  for (let i = 0; i <= field.steps; ++i) {
    const y = field.y(field.step * i);
    parts.push(svg("line", { x1: FIELD.left, y1: y, x2: FIELD.right, y2: y, class: i === 0 ? "axis" : "grid" }));
    parts.push(svg("text", { x: FIELD.left - 6, y: y + 4, "text-anchor": "end" }, plot.format(field.step * i)));
  }
  for (const { x, text } of plot.ticks) {
    const at = field.x(x);
    parts.push(svg("line", { x1: at, y1: FIELD.bottom, x2: at, y2: FIELD.bottom + 4, class: "axis" }));
    parts.push(svg("text", { x: at, y: FIELD.bottom + 18, "text-anchor": "middle" }, text));
  }
  return parts;
}

// Unknown points leave a gap; a point between two gaps is a dot.
function curve(line, index, field) {
  const parts = [];
  const at = ({ x, y }) => `${field.x(x).toFixed(1)},${field.y(y).toFixed(1)}`;
  const dot = ({ x, y }) => svg("circle", { cx: field.x(x), cy: field.y(y), r: 3, fill: colourOf(index) });
  let run = [];
  for (const point of [...line.points, null]) {
    if (point) {
      run.push(point);
      if (line.marks) parts.push(dot(point));
      continue;
    }
    if (run.length > 1) parts.push(svg("polyline", { points: run.map(at).join(" "), fill: "none", ...lookOf(index) }));
    if (run.length === 1 && !line.marks) parts.push(dot(run[0]));
    run = [];
  }
  return parts;
}

function markLine({ x, text }, field) {
  const at = field.x(x);
  const side = at > (FIELD.left + FIELD.right) / 2 ? "end" : "start";
  return [
    svg("line", { x1: at, y1: FIELD.top, x2: at, y2: FIELD.bottom, class: "mark" }),
    svg("text", { x: at + (side === "end" ? -5 : 5), y: FIELD.top + 10, "text-anchor": side }, text),
  ];
}

function legend(plot) {
  const list = make("ul", "legend");
  plot.lines.forEach((line, index) => {
    const entry = make("li");
    const sample = svg("svg", { width: 26, height: 8, "aria-hidden": "true" });
    sample.append(svg("line", { x1: 0, y1: 4, x2: 26, y2: 4, ...lookOf(index) }));
    const last = line.points.findLast(Boolean);
    entry.append(sample, ` ${line.name}${plot.tellsLast && last ? `: ${plot.format(last.y)}` : ""}`);
    list.append(entry);
  });
  return list;
}

// A <figure>. plot: {title, lines: [{name, points: [{x, y} or null], marks}], ticks: [{x, text}],
// format(y), logarithmic, high (the axis reaches at least this), mark: {x, text}, tellsLast}.
export function drawPlot(plot) {
  const figure = make("figure", "plot");
  const caption = make("figcaption", "", plot.title);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": plot.title });
  figure.append(caption, picture, legend(plot));
  if (!plot.lines.some((line) => line.points.some(Boolean))) {
    picture.append(svg("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "nothing yet"));
    return figure;
  }
  const field = new Field(plot);
  picture.append(...axes(plot, field));
  if (plot.mark) picture.append(...markLine(plot.mark, field));
  plot.lines.forEach((line, index) => picture.append(...curve(line, index, field)));
  return figure;
}
