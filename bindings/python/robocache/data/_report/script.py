"""The script of the page: one cursor and one zoom over all plots, and the choice of an episode.

The page is complete without it. It loads nothing, stores nothing and has no dependencies.
"""

SCRIPT = r"""
(() => {
"use strict";
const all = (query, of = document) => [...of.querySelectorAll(query)];
const main = document.querySelector("main");
const WIDE = 1000, SMALLEST = 1e-5;
const groups = {};
const group = name => groups[name] ||= {name, plots: new Set(), axes: [], from: 0, to: 1,
  cursor: null, begin: 0, end: 1, unit: ""};
for (const name of ["t", "e"]) {
  if (!main.dataset[name]) continue;
  const [begin, end, unit] = main.dataset[name].split(",");
  Object.assign(group(name), {begin: +begin, end: +end, unit});
}
const plots = all("svg[data-g]");
for (const plot of plots) group(plot.dataset.g).plots.add(plot);
for (const axis of all(".axis[data-g]")) group(axis.dataset.g).axes.push(axis);
let active = groups.t || groups.e;
if (!active) return;

// ---- drawing: only plots that can be seen are changed
const seen = new Set();
const watcher = new IntersectionObserver(changes => {
  for (const change of changes) {
    if (change.isIntersecting) { seen.add(change.target); draw(change.target); }
    else seen.delete(change.target);
  }
}, {rootMargin: "200px"});
for (const plot of plots) watcher.observe(plot);

const place = (g, part) => g.begin + (g.end - g.begin) * part;
const words = (g, part) => {
  const value = place(g, part), span = (g.end - g.begin) * (g.to - g.from);
  if (g.unit === "row") return String(Math.round(value));
  const digits = Math.max(0, Math.min(9, 2 - Math.floor(Math.log10(Math.max(span, 1e-12)))));
  return value.toFixed(digits) + (g.unit === "s" ? " s" : "");
};
const draw = plot => {
  const g = groups[plot.dataset.g];
  plot.setAttribute("viewBox", `${g.from * WIDE} 0 ${(g.to - g.from) * WIDE} 100`);
  let line = plot.querySelector(".cursor");
  if (!line) {
    line = document.createElementNS(plot.namespaceURI, "path");
    line.setAttribute("class", "cursor");
    plot.append(line);
  }
  line.setAttribute("d", g.cursor === null ? "" : `M${g.cursor * WIDE} 0V100`);
};
const ticks = g => {
  for (const axis of g.axes) {
    const spans = axis.children, last = spans.length - 1;
    for (let i = 0; i <= last; i++)
      spans[i].textContent = words(g, g.from + (g.to - g.from) * i / last);
  }
};
let waiting = false;
const refresh = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    for (const plot of seen) draw(plot);
    for (const name in groups) ticks(groups[name]);
    say();
  });
};

// ---- values at the cursor, from the outlines
const outline = path => {
  const points = [];
  for (const piece of (path.getAttribute("d") || "").split("z")) {
    const parts = piece.match(/-?\d+(\.\d+)?/g);
    if (!parts || parts.length < 2) continue;
    let x = +parts[0], y = +parts[1];
    points.push([x, y]);
    for (let i = 2; i + 1 < parts.length; i += 2) points.push([x += +parts[i], y += +parts[i + 1]]);
  }
  return points;
};
const valueAt = (plot, part) => {
  const path = plot.querySelector(".band"), bounds = plot.dataset.v;
  if (!path || !bounds) return "";
  const [low, high] = bounds.split(",").map(Number), at = part * WIDE;
  let near = Infinity, least = 0, most = 0;
  for (const [x, y] of outline(path)) {
    const apart = Math.abs(x - at);
    if (apart < near) { near = apart; least = most = y; }
    else if (apart === near) { least = Math.min(least, y); most = Math.max(most, y); }
  }
  if (near > 20) return "no sample";
  const narrow = Math.log10(Math.max(Math.abs(low), Math.abs(high)) / (high - low));
  const digits = Number.isFinite(narrow) ? Math.min(15, Math.max(4, Math.ceil(narrow) + 3)) : 4;
  const value = y => Number((low + (high - low) * (95 - y) / 90).toPrecision(digits));
  return value(most) === value(least) ? `${value(least)}` : `${value(most)} to ${value(least)}`;
};

// ---- the bar with the buttons
const bar = document.createElement("div");
bar.className = "bar";
bar.setAttribute("role", "toolbar");
bar.setAttribute("aria-label", "Zoom and cursor of all plots");
const output = document.createElement("output");
const clamp = (from, to) => {
  const span = Math.min(1, Math.max(SMALLEST, to - from));
  from = Math.min(Math.max(0, from), 1 - span);
  return [from, from + span];
};
const zoom = (g, from, to) => { [g.from, g.to] = clamp(from, to); refresh(); };
const scale = factor => {
  const g = active, span = (g.to - g.from) * factor;
  const inside = g.cursor !== null && g.cursor >= g.from && g.cursor <= g.to;
  const middle = inside ? g.cursor : (g.from + g.to) / 2;
  const left = (middle - g.from) / (g.to - g.from);
  zoom(g, middle - span * left, middle + span * (1 - left));
};
const pan = part => {
  const g = active, step = (g.to - g.from) * part;
  zoom(g, g.from + step, g.to + step);
};
const move = part => {
  const g = active, step = (g.to - g.from) * part;
  g.cursor = Math.min(1, Math.max(0, (g.cursor ?? (g.from + g.to) / 2) + step));
  if (g.cursor < g.from) zoom(g, g.cursor, g.cursor + g.to - g.from);
  if (g.cursor > g.to) zoom(g, g.cursor - (g.to - g.from), g.cursor);
  refresh();
};
const reset = () => { active.cursor = null; hovered = null; zoom(active, 0, 1); };
const buttons = [
  ["\u2212", "Zoom out (-)", () => scale(2)], ["+", "Zoom in (+)", () => scale(0.5)],
  ["\u2190", "Earlier (Shift and left arrow)", () => pan(-0.25)],
  ["\u2192", "Later (Shift and right arrow)", () => pan(0.25)], ["All", "Show all (0)", reset],
];
for (const [text, title, run] of buttons) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.title = title;
  button.setAttribute("aria-label", title);
  button.addEventListener("click", run);
  bar.append(button);
}
bar.append(output);
main.append(bar);
let hovered = null;
const say = () => {
  const g = active, range = `${words(g, g.from)} to ${words(g, g.to)}`;
  const unit = g.unit === "row" ? (g.name === "e" ? "rows " : "rows of all ") : "";
  const row = g.unit === "row" ? "row " : "";
  let text = g.cursor === null ? unit + range : row + words(g, g.cursor);
  if (g.cursor !== null && hovered && hovered.dataset.g === g.name) {
    const value = valueAt(hovered, g.cursor);
    if (value) text += ` \u00b7 ${hovered.dataset.name || ""} ${value}`;
  }
  output.textContent = text;
};

// ---- the pointer
let begun = null, shade = null;
const partOf = (plot, event) => {
  const box = plot.getBoundingClientRect(), g = groups[plot.dataset.g];
  const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  return g.from + (g.to - g.from) * part;
};
const remove = () => { if (shade) shade.remove(); shade = null; };
for (const plot of plots) {
  plot.addEventListener("pointermove", event => {
    active = groups[plot.dataset.g];
    hovered = plot;
    active.cursor = partOf(plot, event);
    if (begun !== null && begun.plot === plot) {
      if (!shade) {
        shade = document.createElementNS(plot.namespaceURI, "rect");
        shade.setAttribute("class", "chosen");
        shade.setAttribute("height", "100");
        plot.append(shade);
      }
      shade.setAttribute("x", Math.min(begun.part, active.cursor) * WIDE);
      shade.setAttribute("width", Math.abs(begun.part - active.cursor) * WIDE);
    }
    refresh();
  });
  plot.addEventListener("pointerdown", event => {
    if (event.button === 0) begun = {plot, part: partOf(plot, event), x: event.clientX};
  });
  plot.addEventListener("dblclick", () => { active = groups[plot.dataset.g]; reset(); });
}
addEventListener("pointerup", event => {
  if (begun && Math.abs(event.clientX - begun.x) > 6) {
    const part = partOf(begun.plot, event), g = groups[begun.plot.dataset.g];
    zoom(g, Math.min(begun.part, part), Math.max(begun.part, part));
  }
  begun = null;
  remove();
});
addEventListener("pointercancel", () => { begun = null; remove(); });
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest && event.target.closest("input,select,textarea")) return;
  const step = event.shiftKey ? () => pan : () => move, size = event.shiftKey ? 0.25 : 0.02;
  const keys = {"+": () => scale(0.5), "=": () => scale(0.5), "-": () => scale(2), "0": reset,
    Escape: reset, ArrowLeft: () => step()(-size), ArrowRight: () => step()(size),
    n: () => next(1), p: () => next(-1)};
  if (!keys[event.key]) return;
  keys[event.key]();
  event.preventDefault();
});

// ---- links of findings: to their time
for (const link of all("a[data-at]")) {
  link.addEventListener("click", () => {
    const [begin, end] = link.dataset.at.split(",").map(Number), g = groups.t;
    const part = value => (value - g.begin) / (g.end - g.begin);
    const room = Math.max((part(end) - part(begin)) * 2, 0.01);
    active = g;
    g.cursor = part(begin);
    zoom(g, part(begin) - room, part(end) + room);
  });
}

// ---- one episode
const source = document.getElementById("episodes");
const data = source && JSON.parse(source.textContent);
const code = {}; // the values of the digits A-Z, a-z, 0-9, "-" and "_"
for (const [first, last] of ["AZ", "az", "09", "--", "__"]) {
  for (let c = first.charCodeAt(0); c <= last.charCodeAt(0); ++c) {
    code[String.fromCharCode(c)] = Object.keys(code).length;
  }
}
const decode = text => {
  const rows = [], wide = text[0] === "b" ? 4 : 2;
  for (let i = 1; i + wide <= text.length; i += wide) {
    if (text[i] === "~") { rows.push(null); continue; }
    const low = code[text[i]] * 64 + code[text[i + 1]];
    rows.push([low, wide === 4 ? code[text[i + 2]] * 64 + code[text[i + 3]] : low]);
  }
  return rows;
};
const shape = rows => {
  let path = "", piece = [];
  const at = i => rows.length < 2 ? 0 : i * WIDE / (rows.length - 1);
  const height = value => Math.round(95 - 90 * value / 4095);
  const flush = () => {
    if (piece.length) {
      const points = piece.map(i => [Math.round(at(i)), height(rows[i][1])])
        .concat(piece.map(i => [Math.round(at(i)), height(rows[i][0])]).reverse());
      path += `M${points[0]}`.replace(",", " ") + "l" + (points.slice(1).map((point, i) =>
        `${point[0] - points[i][0]} ${point[1] - points[i][1]}`).join(" ") || "0 0") + "z";
    }
    piece = [];
  };
  rows.forEach((row, i) => { if (row) piece.push(i); else flush(); });
  flush();
  return path;
};
let current = 0, chooser = null;
const choose = index => {
  current = index;
  const number = data.episodes[index], length = data.lengths[index], g = groups.e;
  data.plots.forEach((plot, i) => {
    const paths = all(`svg[data-plot="${i}"] .series`);
    plot[index].forEach((text, s) => paths[s].setAttribute("d", shape(decode(text))));
  });
  Object.assign(g, {end: Math.max(length - 1, 1), from: 0, to: 1, cursor: null});
  document.getElementById("which").textContent = `Episode ${number}: ${length} rows`;
  for (const view of all("svg[data-path]")) {
    const [x, y, z] = view.dataset.path.split(",").map(
      i => i === "" ? null : decode(data.plots[i][index][0]));
    const spans = view.dataset.span.split(",").map(Number);
    view.points = x.map((_, i) => [x, y, z].map((axis, c) =>
      axis && axis[i] ? (axis[i][0] + axis[i][1]) / 8190 * (spans[c] || 0) : axis ? NaN : 0));
    trace(view);
  }
  if (groups.t && groups.t.unit === "row") {
    const g = groups.t, begin = data.offsets[index];
    zoom(g, begin / (g.end || 1), (begin + length - 1) / (g.end || 1));
  }
  if (chooser) chooser.value = String(index);
  refresh();
};
const next = step => {
  if (data) choose(Math.min(data.episodes.length - 1, Math.max(0, current + step)));
};

// ---- paths in three dimensions
const trace = view => {
  const turn = (view.turn ?? 35) * Math.PI / 180, tilt = (view.tilt ?? 25) * Math.PI / 180;
  const flat = view.dataset.flat !== undefined;
  const points = view.points.map(([x, y, z]) => flat ? [x, -y] : [
    x * Math.cos(turn) - y * Math.sin(turn),
    (x * Math.sin(turn) + y * Math.cos(turn)) * Math.sin(tilt) - z * Math.cos(tilt)]);
  const good = points.filter(point => point.every(Number.isFinite));
  if (!good.length) return;
  const ends = axis => [Math.min(...good.map(p => p[axis])), Math.max(...good.map(p => p[axis]))];
  const [left, right] = ends(0), [top, bottom] = ends(1);
  const size = 90 / Math.max(right - left, bottom - top, 1e-12);
  let path = "", up = true, first = null, last = null;
  for (const [x, y] of points) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) { up = true; continue; }
    const to = [(50 + (x - (left + right) / 2) * size).toFixed(1),
      (50 + (y - (top + bottom) / 2) * size).toFixed(1)];
    path += (up ? "M" : "L") + to.join(" ");
    up = false;
    first ||= to;
    last = to;
  }
  view.querySelector(".trace").setAttribute("d", path);
  for (const [name, to] of [["begin", first], ["end", last]]) {
    const dot = view.querySelector(`.${name}`);
    dot.setAttribute("cx", to[0]);
    dot.setAttribute("cy", to[1]);
  }
};
for (const view of all("svg[data-points]")) {
  view.points = view.dataset.points.split(" ").map(part => part === "-" ? [NaN, NaN, NaN] :
    part.split(",").map(Number));
}
for (const view of all("svg.deep")) {
  const box = document.createElement("div");
  box.className = "sliders";
  for (const [name, key, most, value] of [["turn", "turn", 180, 35], ["tilt", "tilt", 90, 25]]) {
    const label = document.createElement("label"), slider = document.createElement("input");
    Object.assign(slider, {type: "range", min: -most, max: most, value});
    slider.addEventListener("input", () => { view[key] = +slider.value; trace(view); });
    label.append(name, slider);
    box.append(label);
  }
  view.after(box);
  let from = null;
  view.addEventListener("pointerdown", event => {
    from = [event.clientX, event.clientY];
    view.setPointerCapture(event.pointerId);
  });
  view.addEventListener("pointermove", event => {
    if (!from) return;
    const sliders = all("input", box);
    sliders[0].value = +sliders[0].value + (event.clientX - from[0]) / 2;
    sliders[1].value = +sliders[1].value + (event.clientY - from[1]) / 2;
    from = [event.clientX, event.clientY];
    view.turn = +sliders[0].value;
    view.tilt = +sliders[1].value;
    trace(view);
  });
  for (const end of ["pointerup", "pointercancel"])
    view.addEventListener(end, () => { from = null; });
}
if (data) {
  const box = document.getElementById("choose");
  const label = document.createElement("label");
  chooser = document.createElement("select");
  data.episodes.forEach((number, i) => {
    const why = data.why[number] ? ` (${data.why[number]})` : "";
    chooser.append(new Option(`${number}: ${data.lengths[i]} rows${why}`, i));
  });
  chooser.addEventListener("change", () => choose(+chooser.value));
  label.append("Episode ", chooser);
  box.append(label);
  for (const link of all("a[data-episode]")) {
    link.addEventListener("click", () => choose(data.episodes.indexOf(+link.dataset.episode)));
  }
  current = data.first;
  chooser.value = String(current);
  for (const view of all("svg[data-path]")) view.points = null;
  const g = {...groups.t};
  choose(current);
  if (groups.t) Object.assign(groups.t, {from: g.from, to: g.to});
}
refresh();
})();
"""
