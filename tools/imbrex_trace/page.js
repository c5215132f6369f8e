// SPDX-License-Identifier: BSD-3-Clause
// Draws the timeline and the matrix of a page that page.py has written. Uses d3, 5 to 7.
//
// Colours are those of Okabe and Ito, which the colour-blind can tell apart. From the eighth name on
// a texture is added to them, and what is wide enough bears its name.
//
// A frame costs about the same however many events there are: a row with more pieces in view than
// its width in pixels is drawn pixel by pixel, by sums over all earlier pieces that are made once;
// of arrows only so many are drawn as can be told apart.
"use strict";

const ARROWS = 1500, ARROWS_AT_FIRST = 150, TEXT_WIDTH = 38, LANE = 26, PATH_LINES = 20000;
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];
const IDLE = [248, 244, 232], OVERHEAD = [190, 190, 190], FADED = [228, 228, 233];
const BLUE = [0, 114, 178];
// Kinds of steps of the critical path, as path_why numbers them. TASK has the task's own colour.
const TASK = 0;
const WAITS = [null, {text: "message or collective on its way", texture: "level"},
               {text: "ready, but waits for a worker", texture: "steep"},
               {text: "waits for an event", texture: "dots"}];
const head = imbrexHead;
const column = {};  // name -> typed array
let ready = false;

const byId = id => document.getElementById(id);
const canvas = byId("canvas"), context = canvas.getContext("2d");
const strip = document.createElement("canvas"), stripContext = strip.getContext("2d");

// ---- reading -----------------------------------------------------------------------------------

async function unpack() {
  const text = atob(imbrexData), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const types = {d: Float64Array, I: Uint32Array, H: Uint16Array, i: Int32Array, B: Uint8Array};
  for (const [name, [type, first, length]] of Object.entries(head.columns)) {
    column[name] = new types[type](buffer, first, length);
  }
}

// Before piece i of its row: time in tasks, and idle.
let inTask, inIdle;
function sum() {
  const {piece_start: start, piece_end: end, piece_idle: idle} = column;
  inTask = new Float64Array(start.length + 1);
  inIdle = new Float64Array(start.length + 1);
  for (let i = 0; i < start.length; ++i) {
    inTask[i + 1] = inTask[i] + (idle[i] ? 0 : end[i] - start[i]);
    inIdle[i + 1] = inIdle[i] + (idle[i] ? end[i] - start[i] : 0);
  }
}

// The first of [from, to) for which values[i] > value, by bisection; the values rise.
function above(values, value, from, to) {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle] > value) to = middle; else from = middle + 1;
  }
  return from;
}

// ---- colours -----------------------------------------------------------------------------------

let palette = [];  // by name: [red, green, blue]
let textures = [];  // by name: "" for none, or a key of TILES
let levels = new Map();  // priority -> [red, green, blue]
let chosen = null;  // a name's number: all others fade
let found = null;  // a set of tasks: the same
let selected = 0;  // a task

const rgb = text => { const c = d3.rgb(text); return [c.r, c.g, c.b].map(Math.round); };
const css = c => `rgb(${c[0]},${c[1]},${c[2]})`;

// Draws one tile of a texture, 8 pixels wide and high, in the colour of the context.
const TILES = {
  steep: tile => { for (const x of [-8, 0, 8]) { tile.moveTo(x, 8); tile.lineTo(x + 8, 0); } },
  dots: tile => { for (const x of [2, 6]) { tile.rect(x, x, 1, 1); } },
  level: tile => { for (const y of [2, 6]) { tile.moveTo(0, y); tile.lineTo(8, y); } },
};
const made = new Map();

// A canvas with the texture in one colour, over another or over nothing.
function tileOf(texture, ink, ground) {
  const key = texture + ink + ground;
  if (!made.has(key)) {
    const box = document.createElement("canvas"), tile = box.getContext("2d");
    box.width = box.height = 8;
    if (ground) { tile.fillStyle = ground; tile.fillRect(0, 0, 8, 8); }
    tile.strokeStyle = ink;
    tile.lineWidth = 1.6;
    tile.beginPath();
    TILES[texture](tile);
    tile.stroke();
    made.set(key, {box, pattern: context.createPattern(box, "repeat"), url: box.toDataURL()});
  }
  return made.get(key);
}

const ofName = texture => tileOf(texture, "rgba(255,255,255,.75)", "");
const ofWait = why => tileOf(WAITS[why].texture, "#222", "#fff");

function choosePalette() {
  const order = head.names.map((_, i) => i).sort((a, b) => head.names[b][2] - head.names[a][2]);
  const turns = ["", "steep", "dots", "level"];
  order.forEach((name, place) => {
    palette[name] = rgb(COLOURS[place % COLOURS.length]);
    textures[name] = turns[Math.floor(place / COLOURS.length) % turns.length];
  });
  const values = Array.from(new Set(column.task_priority)).sort((a, b) => a - b);
  const scale = d3.scaleSequential(d3.interpolateViridis)
      .domain([0, Math.max(1, values.length - 1)]);
  values.forEach((value, place) => levels.set(value, rgb(scale(place))));
  return order.filter(name => head.names[name][2] > 0);
}

function colourOf(task) {
  const name = column.task_name[task];
  if (chosen !== null && chosen !== name || found !== null && !found.has(task)) return FADED;
  switch (byId("colour").value) {
    case "priority": return levels.get(column.task_priority[task]);
    case "state": return BLUE;
    default: return palette[name];
  }
}

// ---- drawing -----------------------------------------------------------------------------------

let LABELS = 128, width = 1000, rowHeight = 22, scale, zoom, asked = false;
let span = [0, head.end];  // what is shown before anybody zooms
let alone = new Set();  // ranks of one worker
const bar = () => rowHeight - 4;
const rowTop = row => LANE + row * rowHeight + 2;
const middle = row => LANE + row * rowHeight + rowHeight / 2;
const bottom = () => LANE + head.rows.length * rowHeight;
const inner = () => byId("view").clientWidth;
const isNarrow = () => inner() < 640;

function layOut() {
  LABELS = isNarrow() ? 50 : 128;
  width = Math.max(200, inner() - LABELS);
  const rows = head.rows.length;
  rowHeight = Math.max(9, Math.min(34, Math.floor(560 / rows)));
  const ratio = window.devicePixelRatio || 1, height = bottom();
  canvas.width = (width + LABELS) * ratio;
  canvas.height = height * ratio;
  canvas.style.width = width + LABELS + "px";
  canvas.style.height = height + "px";
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  strip.width = width;
  strip.height = rows;
  scale = d3.scaleLinear().domain(span).range([0, width]);
  d3.select("#axis").attr("width", width + LABELS).attr("height", 24);
}

function shown() { return d3.zoomTransform(canvas).rescaleX(scale); }

function ask() {
  if (asked || !ready) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

function draw() {
  const now = shown(), [from, to] = now.domain();
  const notes = [];
  context.clearRect(0, 0, width + LABELS, bottom());
  context.save();
  context.beginPath();
  context.rect(LABELS, 0, width, bottom());
  context.clip();
  drawRows(now, from, to);
  context.translate(LABELS, 0);
  if (byId("pauses").checked) drawPauses(now, from, to, notes);
  if (byId("messages").checked) drawMessages(now, from, to, notes);
  drawLane(now, from, to);
  if (byId("path").checked) drawPath(now, from, to);
  drawLimits(now);
  if (selected) drawSelected(now);
  context.restore();
  drawLabels();
  drawAxis(now);
  byId("status").textContent = notes.join("; ");
}

function drawRows(now, from, to) {
  const image = stripContext.createImageData(width, head.rows.length);
  const single = [];
  head.rows.forEach(([, , first, count], row) => {
    const begin = above(column.piece_end, from, first, first + count);
    const end = above(column.piece_start, to, begin, first + count);
    if (end - begin > width) {
      mix(image, row, from, to, begin, end, first);
    } else {
      single.push([row, begin, end]);
      fill(image, row, from, to);
    }
  });
  stripContext.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  head.rows.forEach((_, row) => {
    context.drawImage(strip, 0, row, width, 1, LABELS, rowTop(row), width, bar());
  });
  for (const [row, begin, end] of single) drawPieces(now, row, begin, end);
}

// A row where each piece is drawn has the colour of overhead behind, within the run.
function fill(image, row, from, to) {
  const step = (to - from) / width;
  for (let x = 0; x < width; ++x) {
    const time = from + x * step;
    put(image, row, x, time < head.whole[0] || time > head.whole[1] ? [255, 255, 255] : OVERHEAD);
  }
}

function put(image, row, x, colour) {
  const place = 4 * (row * width + x);
  image.data[place] = colour[0];
  image.data[place + 1] = colour[1];
  image.data[place + 2] = colour[2];
  image.data[place + 3] = 255;
}

// Time in tasks (or idle) of the row until `time`, which piece i is the first to outlast.
function until(sums, idle, i, end, time) {
  if (i >= end || column.piece_start[i] >= time || column.piece_idle[i] !== idle) return sums[i];
  return sums[i] + time - column.piece_start[i];
}

// Each pixel gets the colour of the task in its middle, thinned by what is idle and overhead there.
function mix(image, row, from, to, begin, end) {
  const step = (to - from) / width;
  let i = begin, time = from;
  let tasks = until(inTask, 0, i, end, time), idle = until(inIdle, 1, i, end, time);
  const out = [0, 0, 0];
  for (let x = 0; x < width; ++x) {
    const next = from + (x + 1) * step;
    const centre = Math.min(above(column.piece_end, time + step / 2, i, end), end - 1);
    const j = above(column.piece_end, next, i, end);
    const tasksNext = until(inTask, 0, j, end, next), idleNext = until(inIdle, 1, j, end, next);
    const a = (tasksNext - tasks) / step, b = (idleNext - idle) / step;
    const rest = Math.max(0, 1 - a - b);
    let task = column.piece_idle[centre] ? 0 : column.piece_task[centre];
    for (let near = i; !task && near <= j && near < end && near < i + 8; ++near) {
      if (!column.piece_idle[near]) task = column.piece_task[near];
    }
    const colour = task ? colourOf(task) : FADED;
    for (let c = 0; c < 3; ++c) out[c] = a * colour[c] + b * IDLE[c] + rest * OVERHEAD[c];
    put(image, row, x, out);
    [i, time, tasks, idle] = [j, next, tasksNext, idleNext];
  }
}

function drawPieces(now, row, begin, end) {
  const y = rowTop(row), height = bar();
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (let i = begin; i < end; ++i) {
    const left = Math.max(-2, now(column.piece_start[i]));
    const right = Math.min(width + 2, now(column.piece_end[i]));
    const task = column.piece_task[i];
    const colour = column.piece_idle[i] ? IDLE : colourOf(task);
    context.fillStyle = css(colour);
    context.fillRect(LABELS + left, y, Math.max(0.4, right - left - (right - left > 3 ? 0.7 : 0)),
                     height);
    const texture = column.piece_idle[i] ? "" : textureOf(task);
    if (texture && right - left > 3) {
      context.fillStyle = ofName(texture).pattern;
      context.fillRect(LABELS + left, y, right - left, height);
    }
    if (right - left > TEXT_WIDTH && height > 9) {
      write(column.piece_idle[i] ? "idle" : head.names[column.task_name[task]][0], colour, texture,
            LABELS + Math.max(left, 0), LABELS + Math.min(right, width), y + height / 2);
    }
  }
}

function textureOf(task) {
  return byId("colour").value === "name" && colourOf(task) !== FADED
      ? textures[column.task_name[task]] : "";
}

// On a texture letters stand on a ground of their own.
function write(text, colour, texture, left, right, y) {
  const letters = Math.floor((right - left - 8) / 6.2);
  if (letters < Math.min(3, text.length)) return;
  const short = text.length > letters ? text.slice(0, letters - 1) + "…" : text;
  const dark = 0.3 * colour[0] + 0.6 * colour[1] + 0.1 * colour[2] < 140;
  if (texture) {
    context.fillStyle = css(colour);
    context.fillRect(left + 2, y - 7, context.measureText(short).width + 4, 14);
  }
  context.fillStyle = dark ? "#fff" : "#222";
  context.fillText(short, left + 4, y + 0.5);
}

// ---- the critical path -------------------------------------------------------------------------

// The row above all workers: what each moment was waited for. Steps narrower than a pixel share it
// with their neighbours; what takes most of it is drawn.
function drawLane(now, from, to) {
  const top = 2, height = LANE - 8;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  let pixel = -1, parts = new Map();  // key of a step -> [width, step]
  const flush = () => {
    let best = null;
    for (const part of parts.values()) if (!best || part[0] > best[0]) best = part;
    if (best) laneBox(best[1], pixel, pixel + 1, top, height);
    parts = new Map();
  };
  const first = above(column.path_end, from, 0, column.path_end.length);
  for (let i = first; i < column.path_start.length && column.path_start[i] <= to; ++i) {
    const left = Math.max(-2, now(column.path_start[i]));
    const right = Math.min(width + 2, now(column.path_end[i]));
    if (Math.floor(left) !== pixel || right - left >= 1) flush();
    pixel = Math.floor(left);
    if (right - left >= 1) {
      laneBox(i, left, right, top, height);
      continue;
    }
    const key = column.path_why[i] ? -column.path_why[i] : column.task_name[column.path_task[i]];
    const part = parts.get(key) || [0, i];
    part[0] += right - left;
    parts.set(key, part);
  }
  flush();
  context.strokeStyle = "#555";
  context.lineWidth = 1;
  context.strokeRect(now(0), top, now(head.end) - now(0), height);
}

function laneBox(i, left, right, top, height) {
  const why = column.path_why[i], task = column.path_task[i];
  const colour = why === TASK && task ? colourOf(task) : [255, 255, 255];
  context.fillStyle = why === TASK ? css(colour) : ofWait(why).pattern;
  context.fillRect(left, top, right - left, height);
  const texture = why === TASK && task ? textureOf(task) : "";
  if (texture && right - left > 3) {
    context.fillStyle = ofName(texture).pattern;
    context.fillRect(left, top, right - left, height);
  }
  if (right - left <= TEXT_WIDTH) return;
  write(why === TASK ? head.names[column.task_name[task]][0] : head.texts[column.path_text[i]],
        colour, why !== TASK || texture, Math.max(left, 0), Math.min(right, width),
        top + height / 2);
}

// Where the part begins and ends that the tables and the verdict are about.
function drawLimits(now) {
  if (span[0] === 0 && span[1] === head.end) return;
  context.fillStyle = "rgba(255,255,255,.55)";
  const left = now(0), right = now(head.end);
  if (left > 0) context.fillRect(0, LANE, Math.min(left, width), bottom());
  if (right < width) context.fillRect(Math.max(right, 0), LANE, width, bottom());
  context.strokeStyle = "#222";
  context.lineWidth = 1.5;
  context.setLineDash([6, 4]);
  context.beginPath();
  for (const x of [left, right]) { context.moveTo(x, 0); context.lineTo(x, bottom()); }
  context.stroke();
  context.setLineDash([]);
}

// The numbers of those with starts in order that meet [from, to], thinned to at most ARROWS.
function some(starts, ends, from, to) {
  const end = above(starts, to, 0, starts.length);
  const result = [];
  for (let i = end - 1, looked = 0; i >= 0 && looked < 200000; --i, ++looked) {
    if (ends[i] >= from) result.push(i);
  }
  const every = Math.ceil(result.length / ARROWS);
  return [result.filter((_, place) => place % every === 0), every];
}

function drawMessages(now, from, to, notes) {
  const [visible, every] = some(column.message_sent, column.message_received, from, to);
  if (every > 1) notes.push(`1 of ${every} messages drawn: zoom in for all`);
  context.strokeStyle = `rgba(20,20,20,${visible.length > 300 ? 0.25 : 0.6})`;
  context.fillStyle = "rgba(20,20,20,.7)";
  context.lineWidth = 0.9;
  context.beginPath();
  const heads = [];
  for (const i of visible) {
    const x0 = now(column.message_sent[i]), y0 = middle(column.message_from[i]);
    const x1 = now(column.message_received[i]), y1 = middle(column.message_to[i]);
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    if (visible.length <= 400) heads.push([x0, y0, x1, y1]);
  }
  context.stroke();
  for (const [x0, y0, x1, y1] of heads) arrowHead(x0, y0, x1, y1);
}

function arrowHead(x0, y0, x1, y1) {
  const angle = Math.atan2(y1 - y0, x1 - x0);
  context.beginPath();
  context.moveTo(x1, y1);
  for (const turn of [2.75, -2.75]) {
    context.lineTo(x1 + 6 * Math.cos(angle + turn), y1 + 6 * Math.sin(angle + turn));
  }
  context.fill();
}

function drawPauses(now, from, to, notes) {
  const [visible, every] = some(column.pause_start, column.pause_end, from, to);
  if (every > 1) notes.push(`1 of ${every} suspensions drawn`);
  context.strokeStyle = "rgba(150,0,110,.55)";
  context.setLineDash([4, 3]);
  context.lineWidth = 1;
  context.beginPath();
  for (const i of visible) {
    const x0 = now(column.pause_start[i]), x1 = now(column.pause_end[i]);
    const y0 = rowTop(column.pause_from[i]) + bar(), y1 = rowTop(column.pause_to[i]) + bar();
    context.moveTo(x0, y0 - 2);
    context.bezierCurveTo(x0, y0 + 3, x1, y1 + 3, x1, y1 - 2);
  }
  context.stroke();
  context.setLineDash([]);
}

// Solid where a task runs, dotted where the path waits, slanted from the sender of a message.
function drawPath(now, from, to) {
  const first = above(column.path_end, from, 0, column.path_end.length);
  const last = above(column.path_start, to, first, column.path_start.length);
  if (last - first > PATH_LINES) return;  // the row above shows them, pixel by pixel
  for (const [colour, thick] of [["#fff", 5], ["#000", 2]]) {
    for (const dots of [[], [2, 3]]) {
      context.strokeStyle = colour;
      context.lineWidth = thick;
      context.setLineDash(dots);
      context.beginPath();
      for (let i = first; i < last; ++i) {
        if ((column.path_why[i] === TASK) === dots.length > 0) continue;
        context.moveTo(Math.max(-9, now(column.path_start[i])), middle(column.path_from[i]));
        context.lineTo(now(column.path_end[i]), middle(column.path_row[i]));
      }
      context.stroke();
    }
  }
  context.setLineDash([]);
}

function drawLabels() {
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = "#222";
  const narrow = isNarrow();
  context.fillText(narrow ? "path" : "critical path", 4, LANE / 2 - 2);
  let drawn = -20;
  head.rows.forEach(([rank, worker, , , borrowed], row) => {
    if (middle(row) - drawn < 11) return;
    drawn = middle(row);
    const text = alone.has(rank) ? `rank ${rank}` : narrow ? `r${rank} w${worker}`
        : head.ranks.length > 1 ? `rank ${rank}, worker ${worker}` : `worker ${worker}`;
    context.fillText(borrowed ? `${text} (borrowed)` : text, 4, middle(row));
  });
}

function inWords(micro) {
  const size = Math.abs(micro);
  const digits = Math.max(3, 1 + Math.ceil(Math.log10(size / Math.max(1e-3, resolution))));
  const unit = size >= 1e6 ? [1e6, "s"] : size >= 1e3 ? [1e3, "ms"] : [1, "us"];
  return `${+(micro / unit[0]).toPrecision(Math.min(digits, 12))} ${unit[1]}`;
}

// Of times that are points and not lengths: as many digits as the view can tell apart.
let resolution = 1e12;
function atTime(micro) {
  const [from, to] = shown().domain();
  resolution = (to - from) / 300;
  const text = micro ? inWords(micro) : "0";
  resolution = 1e12;
  return text;
}

function drawAxis(now) {
  const axis = d3.axisTop(now).ticks(Math.max(2, width / 130)).tickFormat(atTime);
  d3.select("#axis").selectAll("g").data([0]).join("g")
      .attr("transform", `translate(${LABELS},22)`).call(axis);
}

// ---- one task ----------------------------------------------------------------------------------

function partsOf(task) {
  const result = [];
  head.rows.forEach(([, , first, count], row) => {
    for (let i = first; i < first + count; ++i) {
      if (column.piece_task[i] === task) result.push([row, i]);
    }
  });
  return result.sort((a, b) => column.piece_start[a[1]] - column.piece_start[b[1]]);
}

let selectedParts = [], selectedEdges = [];

function select(task) {
  selected = task;
  selectedParts = task ? partsOf(task) : [];
  selectedEdges = [];
  const begin = selectedParts[0];
  for (const earlier of task ? earlierOf(task) : []) {
    const last = partsOf(earlier).pop();
    if (last && begin) selectedEdges.push([last, begin]);
  }
  describe(task);
  ask();
}

function earlierOf(task) {
  return Array.from(column.before.subarray(column.task_before_first[task],
                                           column.task_before_first[task + 1]));
}

function drawSelected(now) {
  context.strokeStyle = "#000";
  context.lineWidth = 2;
  for (const [row, i] of selectedParts) {
    const x = now(column.piece_start[i]);
    context.strokeRect(x, rowTop(row), Math.max(2, now(column.piece_end[i]) - x), bar());
  }
  context.strokeStyle = "#0a5";
  context.lineWidth = 1.6;
  context.beginPath();
  for (const [[row0, i0], [row1, i1]] of selectedEdges) {
    const x0 = now(column.piece_end[i0]), x1 = now(column.piece_start[i1]);
    const bend = Math.max(12, Math.abs(x1 - x0) / 3);
    context.moveTo(x0, middle(row0));
    context.bezierCurveTo(x0 + bend, middle(row0), x1 - bend, middle(row1), x1, middle(row1));
  }
  context.stroke();
}

const titleOf = task => `${head.names[column.task_name[task]][0]} #${column.task_id[task]}`;

function link(parent, task) {
  const anchor = document.createElement("a");
  anchor.textContent = `${titleOf(task)} (rank ${column.task_rank[task]})`;
  anchor.onclick = () => { select(task); reveal(); };
  parent.append(anchor, "  ");
}

function describe(task) {
  const box = byId("details");
  box.textContent = "";
  if (!task) return;
  const where = head.names[column.task_name[task]][1];
  const created = column.task_created[task];
  const first = selectedParts[0], last = selectedParts[selectedParts.length - 1];
  box.append(`${titleOf(task)}, rank ${column.task_rank[task]}` + (where ? `, made at ${where}` : "") +
             `, priority ${column.task_priority[task]}\n` +
             (created !== -1 ? `made at ${atTime(created)}, ` : "") +
             (first ? `began at ${atTime(column.piece_start[first[1]])}, ended at ` +
                      `${atTime(column.piece_end[last[1]])}, ` : "never began, ") +
             `ran ${inWords(column.task_ran[task])}\n`);
  describePauses(box, task);
  describeMessages(box, task);
  const parent = column.task_parent[task];
  if (parent) { box.append("made by "); link(box, parent); box.append("\n"); }
  const earlier = earlierOf(task);
  if (earlier.length) {
    box.append(`follows ${earlier.length}: `);
    earlier.slice(0, 20).forEach(one => link(box, one));
  }
}

function describePauses(box, task) {
  for (let i = 0, said = 0; i < column.pause_task.length && said < 10; ++i) {
    if (column.pause_task[i] !== task) continue;
    ++said;
    box.append(`suspended at ${atTime(column.pause_start[i])} for ` +
               `${inWords(column.pause_end[i] - column.pause_start[i])}: ` +
               `${head.names[column.pause_name[i]][0]}\n`);
  }
}

function describeMessages(box, task) {
  for (let i = 0, said = 0; i < column.message_sent.length && said < 10; ++i) {
    const sends = column.message_sender[i] === task;
    if (!sends && column.message_receiver[i] !== task) continue;
    ++said;
    const peer = head.rows[sends ? column.message_to[i] : column.message_from[i]][0];
    const communicator = column.message_communicator[i];  // 0: MPI_COMM_WORLD
    box.append(`${sends ? "sent" : "received"} ${column.message_bytes[i]} B ` +
               `${sends ? "to" : "from"} rank ${peer}, tag ${column.message_tag[i]}, ` +
               (communicator ? `communicator ${communicator}, ` : "") +
               `${inWords(column.message_received[i] - column.message_sent[i])} on its way\n`);
  }
}

// Moves the view to the selected task, if it is not in there.
function reveal() {
  if (!selectedParts.length) return;
  const [from, to] = shown().domain(), time = column.piece_start[selectedParts[0][1]];
  if (time < from || time > to) zoomTo(time - (to - from) / 2, time + (to - from) / 2);
}

// ---- the mouse ---------------------------------------------------------------------------------

function pieceAt(event) {
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left - LABELS, y = event.clientY - box.top - LANE;
  const row = Math.floor(y / rowHeight), time = shown().invert(x);
  if (x < 0 || row >= head.rows.length) return [-1, time, -2];
  if (y < 0) {
    const i = above(column.path_end, time, 0, column.path_end.length);
    return [i < column.path_end.length && column.path_start[i] <= time ? i : -1, time, -1];
  }
  const [, , first, count] = head.rows[row];
  const i = above(column.piece_end, time, first, first + count);
  const hit = i < first + count && column.piece_start[i] <= time;
  return [hit ? i : -1, time, row];
}

function hover(event) {
  const tip = byId("tip"), [i, time, row] = pieceAt(event);
  const outside = row === -2 || time <= head.whole[0] || time >= head.whole[1] ||
      row === -1 && i < 0;
  tip.style.display = outside ? "none" : "block";
  if (outside) return;
  tip.textContent = row === -1 ? aboutStep(i) : aboutPiece(i, time, row);
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - 310)) + "px";
  tip.style.top = event.clientY + 16 + "px";
}

function aboutStep(i) {
  const long = inWords(column.path_end[i] - column.path_start[i]), task = column.path_task[i];
  const name = task ? titleOf(task) : "(no task)";
  const rank = task ? `, rank ${column.task_rank[task]}` : "";
  if (column.path_why[i] === TASK) return `critical path: ${name}${rank} runs\n${long}`;
  return `critical path: ${head.texts[column.path_text[i]]}\n${long}, before ${name}${rank}\n` +
      `a worker was idle for ${inWords(column.path_idle[i])} of it`;
}

function aboutPiece(i, time, row) {
  const [rank, worker] = head.rows[row];
  const place = `rank ${rank}, worker ${worker}, ${atTime(time)}\n`;
  if (i < 0) return place + "overhead";
  const task = column.piece_task[i];
  return place + (column.piece_idle[i] ? task ? "idle in " : "idle" : "") +
      (task ? titleOf(task) + `\npriority ${column.task_priority[task]}` : "") +
      `\n${inWords(column.piece_end[i] - column.piece_start[i])}`;
}

function zoomTo(from, to) {
  const k = (span[1] - span[0]) / (to - from);
  d3.select(canvas).call(zoom.transform, d3.zoomIdentity.scale(k).translate(-scale(from), 0));
}

function listen() {
  zoom = d3.zoom().scaleExtent([1, Math.max(2, (head.whole[1] - head.whole[0]) * 4)])
      .extent([[0, 0], [width, 1]]).translateExtent([[0, 0], [width, 1]]).on("zoom", ask);
  // Its points are those of the canvas: the labels stand left of the time.
  // A wheel that can zoom out no further scrolls the page.
  d3.select(canvas).call(zoom).on("dblclick.zoom", null);
  canvas.addEventListener("mousemove", hover);
  canvas.addEventListener("mouseleave", () => { byId("tip").style.display = "none"; });
  canvas.addEventListener("click", event => {
    const [i, , row] = pieceAt(event);
    select(i < 0 || row === -2 ? 0 : row === -1 ? column.path_task[i] : column.piece_task[i]);
  });
  for (const id of ["colour", "messages", "pauses", "path"]) {
    byId(id).addEventListener("change", () => { legend(); ask(); });
  }
  byId("fit").onclick = () => zoomTo(...span);
  byId("in").onclick = () => d3.select(canvas).call(zoom.scaleBy, 2);
  byId("out").onclick = () => d3.select(canvas).call(zoom.scaleBy, 0.5);
  byId("whole").onchange = () => {
    span = byId("whole").checked ? head.whole : [0, head.end];
    layOut();
    zoomTo(...span);
  };
  byId("search").addEventListener("input", search);
  window.addEventListener("resize", () => { layOut(); limit(); ask(); });
}

function limit() {
  zoom.extent([[0, 0], [width, 1]]).translateExtent([[0, 0], [width, 1]]);
}

function search() {
  const text = byId("search").value.trim().toLowerCase();
  found = null;
  if (text) {
    const names = new Set(head.names.flatMap(
        ([name], i) => name.toLowerCase().includes(text) ? [i] : []));
    found = new Set();
    for (let task = 1; task < column.task_id.length; ++task) {
      if (names.has(column.task_name[task]) || String(column.task_id[task]) === text) {
        found.add(task);
      }
    }
  }
  ask();
}

// With its place, if others have the same name.
function nameOf(name) {
  const [text, where] = head.names[name];
  const others = order.filter(other => head.names[other][0] === text).length > 1;
  return others && where ? `${text} (${where.slice(where.lastIndexOf("/") + 1)})` : text;
}

// ---- legend and matrix -------------------------------------------------------------------------

let order = [];

function legend() {
  const box = byId("legend"), how = byId("colour").value;
  const entry = (colour, tile, text, click, off) => {
    const span = document.createElement("span"), square = document.createElement("i");
    square.style.background = (tile ? `url(${tile.url}) ` : "") + css(colour);
    span.append(square, text);
    span.title = text;
    if (click) span.onclick = click;
    span.className = (click ? "name" : "") + (off ? " off" : "");
    box.append(span);
  };
  box.textContent = "";
  if (how === "name") {
    for (const name of order.slice(0, 24)) {
      entry(palette[name], textures[name] && ofName(textures[name]), nameOf(name), () => {
        chosen = chosen === name ? null : name;
        legend();
        ask();
      }, chosen !== null && chosen !== name);
    }
    if (order.length > 24) entry([255, 255, 255], null, `and ${order.length - 24} more names`);
  } else if (how === "priority") {
    const values = Array.from(levels.keys());
    const every = Math.ceil(values.length / 10);
    values.filter((_, i) => i % every === 0 || i === values.length - 1)
        .forEach(value => entry(levels.get(value), null, String(value)));
  } else {
    entry(BLUE, null, "in task");
  }
  entry(IDLE, null, "idle");
  entry(OVERHEAD, null, "overhead");
  for (const why of new Set(column.path_why)) {
    if (why !== TASK) entry([255, 255, 255], ofWait(why), `critical path: ${WAITS[why].text}`);
  }
}

function drawMatrix() {
  const what = document.querySelector("input[name=matrix]:checked").value;
  const values = head.matrix[what], ranks = head.ranks, many = ranks.length;
  const size = Math.max(5, Math.min(64, Math.floor(Math.min(640, inner() - 60) / many)));
  const largest = d3.max(values.flat()) || 1;
  const shade = d3.scaleSequential(d3.interpolateBlues).domain([-0.12 * largest, largest]);
  const svg = d3.select("#matrix").attr("width", many * size + 60).attr("height", many * size + 40);
  svg.selectAll("*").remove();
  const cells = svg.append("g").attr("transform", "translate(50,24)");
  values.forEach((line, from) => line.forEach((value, to) => {
    const cell = cells.append("g").attr("transform", `translate(${to * size},${from * size})`);
    cell.append("rect").attr("width", size - 1).attr("height", size - 1)
        .attr("fill", value ? shade(value) : "#f6f6f6")
        .append("title").text(`${ranks[from]} to ${ranks[to]}: ${value} ${what}`);
    if (size < 34 || !value) return;
    cell.append("text").attr("x", size / 2).attr("y", size / 2 + 4).attr("text-anchor", "middle")
        .attr("fill", value > 0.55 * largest ? "#fff" : "#222").attr("pointer-events", "none")
        .text(d3.format(value < 1000 ? "d" : ".3s")(value));
  }));
  const every = Math.ceil(14 / size);
  ranks.forEach((rank, at) => {
    if (at % every) return;
    cells.append("text").attr("x", (at + 0.5) * size).attr("y", -6).attr("text-anchor", "middle")
        .text(rank);
    cells.append("text").attr("x", -8).attr("y", (at + 0.5) * size + 4).attr("text-anchor", "end")
        .text(rank);
  });
}

// ---- start -------------------------------------------------------------------------------------

async function start() {
  await unpack();
  sum();
  order = choosePalette();
  const workers = new Map();  // rank -> how many
  for (const [rank] of head.rows) workers.set(rank, (workers.get(rank) || 0) + 1);
  alone = new Set(head.ranks.filter(rank => workers.get(rank) === 1));
  byId("messages").checked = column.message_sent.length <= ARROWS_AT_FIRST;
  byId("arrows").hidden = column.message_sent.length === 0;
  byId("curves").hidden = column.pause_start.length === 0;
  byId("crop").hidden = head.whole[0] === 0 && head.whole[1] === head.end;
  layOut();
  listen();
  legend();
  if (head.ranks.length > 1) {
    drawMatrix();
    document.querySelectorAll("input[name=matrix]").forEach(one => { one.onchange = drawMatrix; });
  } else {
    byId("communication").remove();
  }
  ready = true;
  draw();
}
const started = start();
started.catch(error => { byId("status").textContent = `cannot be shown: ${error}`; });
