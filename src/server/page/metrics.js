// What /metrics said, second by second: ten minutes of it are kept.

const KEPT = 600;
const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

function readLabels(text) {
  const labels = {};
  for (const [, name, value] of text.matchAll(LABEL)) labels[name] = value.replace(/\\(.)/g, "$1");
  return labels;
}

// One reading: samples by name, each {labels, value}.
export class Reading {
  constructor(text, atMs) {
    this.at = atMs;
    this.samples = new Map();
    for (const line of text.split("\n")) {
      const match = LINE.exec(line);
      if (!match) continue;
      const [, name, labels, value] = match;
      if (!this.samples.has(name)) this.samples.set(name, []);
      this.samples.get(name).push({ labels: readLabels(labels ?? ""), value: Number(value) });
    }
  }

  // The sum of all samples of this name; undefined where there is none.
  sum(name) {
    return this.samples.get(name)?.reduce((all, sample) => all + sample.value, 0);
  }

  // {value of the label: sum}
  by(name, label) {
    const sums = {};
    for (const { labels, value } of this.samples.get(name) ?? []) {
      sums[labels[label]] = (sums[labels[label]] ?? 0) + value;
    }
    return sums;
  }

  // Which server this is: counters of one that was started again begin anew.
  get life() {
    return this.sum("process_start_time_seconds");
  }
}

export class History {
  readings = [];

  // Null stands for a second without an answer.
  add(reading) {
    this.readings.push(reading);
    if (this.readings.length > KEPT) this.readings.shift();
  }

  get last() {
    return this.readings.at(-1) ?? null;
  }

  // The last reading of the same server that is at least so old as seen from reading `index`; one
  // nearer to it where there is none; null where there is no other.
  before(index, seconds) {
    const now = this.readings[index];
    let found = null;
    for (let i = index - 1; i >= 0; --i) {
      const reading = this.readings[i];
      if (!reading) continue;
      if (reading.life !== now.life) break;
      found = reading;
      if (now.at - reading.at >= 1000 * seconds) break;
    }
    return found;
  }

  // A line: value(now, before) of every reading, null where it is not known.
  line(value, seconds = 1) {
    return this.readings.map((now, index) => {
      if (!now) return null;
      const before = this.before(index, seconds);
      const y = value(now, before, before ? (now.at - before.at) / 1000 : 0);
      return Number.isFinite(y) ? { x: now.at, y } : null;
    });
  }

  // The increase of a counter a second.
  rate(name, seconds) {
    return this.line((now, before, passed) => (before ? (now.sum(name) - before.sum(name)) / passed : NaN), seconds);
  }

  // A quantile of what a histogram took in during the last seconds, within a bucket by proportion.
  quantile(name, share, seconds) {
    return this.line((now, before) => {
      if (!before) return NaN;
      const then = before.by(`${name}_bucket`, "le");
      const counts = Object.entries(now.by(`${name}_bucket`, "le"))
        .map(([le, count]) => ({ le: le === "+Inf" ? Infinity : Number(le), count: count - (then[le] ?? 0) }))
        .sort((a, b) => a.le - b.le);
      return quantileOf(counts, share);
    }, seconds);
  }
}

function quantileOf(counts, share) {
  const wanted = share * (counts.at(-1)?.count ?? 0);
  if (!(wanted > 0)) return NaN;
  let low = 0;
  let below = 0;
  for (const { le, count } of counts) {
    if (count >= wanted) return le === Infinity ? low : low + ((le - low) * (wanted - below)) / (count - below);
    low = le;
    below = count;
  }
  return low;
}
