// The strip on top and the live plots, both from /metrics, whose names any dashboard reads.
import { ApiFailure, explainFailure, getText } from "./api.js";
import { element } from "./dom.js";
import { History, Reading } from "./metrics.js";
import { drawPlot } from "./plots.js";
import { duration, percent, short } from "./text.js";

const WINDOW_S = 60; // quantiles, hit rates and misses are of the last minute
const RATE_S = 5;
const NAMES_MAX = 7;
const history = new History();

function showStrip(now) {
  const show = (id, value, text) => {
    if (Number.isFinite(value)) element(id).textContent = text;
  };
  const running = now.sum("vllm:num_requests_running");
  const waiting = now.sum("vllm:num_requests_waiting");
  const usage = now.sum("vllm:kv_cache_usage_perc");
  const hits = now.sum("vllm:prefix_cache_hits_total") / now.sum("vllm:prefix_cache_queries_total");
  show("running", running, running);
  show("waiting", waiting, waiting);
  show("usage", usage, percent(usage));
  if (Number.isFinite(usage)) element("usage-bar").value = usage;
  show("hits", hits, percent(hits));
}

export async function lookAtMetrics() {
  try {
    const now = new Reading(await getText("/metrics"), Date.now());
    history.add(now);
    showStrip(now);
  } catch (error) {
    history.add(null);
    const refused = error instanceof ApiFailure;
    element("live-note").textContent = refused
      ? `No plots: ${explainFailure(error)}.`
      : "The server does not answer.";
  }
}

// Every label that had a value above 0 lately, the largest first.
function namesOf(name, label) {
  const most = {};
  for (const reading of history.readings) {
    for (const [key, value] of Object.entries(reading?.by(name, label) ?? {})) {
      most[key] = Math.max(most[key] ?? 0, value);
    }
  }
  return Object.keys(most)
    .filter((key) => most[key] > 0)
    .sort((a, b) => most[b] - most[a])
    .slice(0, NAMES_MAX);
}

const now = (name) => history.line((reading) => reading.sum(name));
const linesBy = (name, label) =>
  namesOf(name, label).map((key) => ({
    name: key,
    points: history.line((reading) => reading.by(name, label)[key] ?? NaN),
  }));

function latency(title, name) {
  const inMs = (point) => point && { ...point, y: 1000 * point.y };
  const line = (share) => history.quantile(name, share, WINDOW_S).map(inMs);
  return {
    title: `${title}, of the last minute`,
    lines: [{ name: "p50", points: line(0.5) }, { name: "p95", points: line(0.95) }],
    format: duration,
  };
}

function hitRate() {
  const gain = (to, from, name) => to.sum(name) - from.sum(name);
  const rate = (to, from) =>
    gain(to, from, "vllm:prefix_cache_hits_total") / gain(to, from, "vllm:prefix_cache_queries_total");
  return {
    title: "Hit rate: prompt tokens that the cache had, of the last minute",
    lines: [{ name: "hit rate", points: history.line((to, from) => (from ? rate(to, from) : NaN), WINDOW_S) }],
    format: percent,
    high: 1,
  };
}

function misses() {
  const name = "pagoda:prefix_misses_total";
  const reasons = namesOf(name, "reason").filter((reason) => reason !== "none");
  const count = (reading, reason) => reading.by(name, "reason")[reason] ?? 0;
  const gain = (reason) => (to, from) => (from ? count(to, reason) - count(from, reason) : NaN);
  return {
    title: "Reasons of misses: requests of the last minute",
    lines: reasons.map((reason) => ({ name: reason, points: history.line(gain(reason), WINDOW_S) })),
    format: short,
  };
}

// How full every tier is; memory is the pool, whose reusable blocks count.
function tiers() {
  const memory = history.line((reading) => {
    const { free = NaN, active, reusable } = reading.by("pagoda:kv_blocks", "state");
    return (active + reusable) / (free + active + reusable);
  });
  const share = (tier) => (reading) =>
    reading.by("pagoda:tier_bytes", "tier")[tier] / reading.by("pagoda:tier_bytes_max", "tier")[tier];
  const names = namesOf("pagoda:tier_bytes_max", "tier");
  const outside = names.map((name) => ({ name, points: history.line(share(name)) }));
  return {
    title: "KV by tier: share of its room that holds pages",
    lines: [{ name: "memory", points: memory }, ...outside],
    format: percent,
    high: 1,
  };
}

function plots() {
  return [
    latency("TTFT", "vllm:time_to_first_token_seconds"),
    latency("ITL", "vllm:inter_token_latency_seconds"),
    {
      title: "Tokens a second",
      lines: [
        { name: "generated", points: history.rate("vllm:generation_tokens_total", RATE_S) },
        { name: "of prompts", points: history.rate("vllm:prompt_tokens_total", RATE_S) },
      ],
      format: short,
    },
    {
      title: "Requests",
      lines: [
        { name: "running", points: now("vllm:num_requests_running") },
        { name: "waiting", points: now("vllm:num_requests_waiting") },
      ],
      format: short,
    },
    {
      title: "KV by tenant: cached blocks of its own",
      lines: linesBy("pagoda:tenant_kv_blocks", "tenant"),
      format: short,
    },
    tiers(),
    hitRate(),
    misses(),
  ];
}

// Ticks of the time that is kept, in minutes before now.
function timeTicks(from, to) {
  const span = Math.max(60_000, to - from);
  const step = span > 300_000 ? 120_000 : span > 120_000 ? 60_000 : 30_000;
  const ticks = [];
  for (let back = 0; back <= span; back += step) {
    const ago = back % 60_000 ? `-${back / 1000} s` : `-${back / 60_000} min`;
    ticks.push({ x: to - back, text: back === 0 ? "now" : ago });
  }
  return ticks;
}

export function drawLive() {
  const readings = history.readings.filter(Boolean);
  if (readings.length === 0) return;
  const ticks = timeTicks(readings[0].at, readings.at(-1).at);
  if (history.last) element("live-note").textContent = "The plots begin when the page was opened and keep ten minutes.";
  element("plots").replaceChildren(...plots().map((plot) => drawPlot({ ...plot, ticks, tellsLast: true })));
}
