// The hit-rate curve: GET /cache/curve.
import { explainFailure, getJson } from "./api.js";
import { element, make } from "./dom.js";
import { drawPlot } from "./plots.js";
import { bytes, percent } from "./text.js";

// Unknown hit rates are null, and leave a gap.
const points = (list) => list.map(({ blocks, hit_rate: y }) => (y === null ? null : { x: blocks, y }));

function plotOf(curve) {
  // Every second size is named, today's among them.
  const today = curve.lru.findIndex(({ blocks }) => blocks === curve.blocks);
  const named = curve.lru.filter((_, index) => (index - today) % 2 === 0);
  return {
    title: "Hit rate by size of the cache",
    lines: [
      { name: "lru", points: points(curve.lru), marks: true },
      ...curve.policies
        .filter(({ policy }) => policy !== "lru")
        .map(({ policy, points: rates }) => ({ name: policy, points: points(rates), marks: true })),
    ],
    ticks: named.map(({ blocks, bytes: size }) => ({ x: blocks, text: bytes(size) })),
    format: percent,
    logarithmic: true,
    high: 1,
    mark: { x: curve.blocks, text: `today: ${bytes(curve.bytes)}, ${curve.policy}` },
  };
}

function row(kind, cells) {
  const made = make("tr");
  made.append(...cells.map((cell) => make(kind, "", cell)));
  return made;
}

function tableOf(curve) {
  const rate = ({ hit_rate: value }) => (value === null ? "unknown" : percent(value));
  const table = make("table");
  table.append(make("caption", "", "Policies, by the share of blocks that they would have had"));
  const head = make("thead");
  head.append(row("th", ["policy", "half the size", "today's", "twice"]));
  const body = make("tbody");
  for (const { policy, points: rates } of curve.policies) {
    const name = policy === curve.policy ? `${policy} (runs)` : policy;
    body.append(row("td", [name, ...rates.map(rate)]));
  }
  table.append(head, body);
  return table;
}

// Sentences of the server's: what a change of the cache would give.
export function showAdvice({ advice }) {
  element("curve-advice").replaceChildren(...advice.map(({ text }) => make("li", "", `${text}.`)));
}

function show(curve) {
  const note = element("curve-note");
  if (!curve.enabled) {
    note.textContent = "This server follows no curve: it was started with --no-kv-curve.";
    return;
  }
  note.textContent = `Of ${curve.blocks_asked} blocks that prompts asked for, so far.`;
  showAdvice(curve);
  element("curve-plot").replaceChildren(drawPlot(plotOf(curve)));
  element("curve-table").replaceChildren(tableOf(curve));
}

export async function lookAtCurve() {
  try {
    show(await getJson("/cache/curve"));
  } catch (error) {
    element("curve-note").textContent = `No curve: ${explainFailure(error)}.`;
  }
}
