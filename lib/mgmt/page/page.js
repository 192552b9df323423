
"use strict";
// SPDX-License-Identifier: BSD-3-Clause
// The live page. Texts of the server are set by textContent only.

const byId = (id) => document.getElementById(id);
const now = {}; // the newest document of each command
let before = null; // what rates are made from
const sent = []; // bytes per second, for the curve

// --- texts ---------------------------------------------------------------------------------------

function scaled(value, step, units) {
  let i = 0;
  while (value >= step && i < units.length - 1) {
    value /= step;
    i++;
  }
  const digits = i === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toFixed(digits) + " " + units[i];
}
const bits = (bytes) => scaled(8 * bytes, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
const size = (bytes) => scaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const count = (n) => n < 10000 ? String(Math.round(n)) : scaled(n, 1000, ["", "k", "M", "G"]);
const perSecond = (n) => (n < 10 && n > 0 ? n.toFixed(1) : count(n)) + "/s";
const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(1) + "\u00a0%" : "–";

function micros(us) {
  return us < 1 ? "< 1 µs" : us < 1000 ? us + " µs" : us < 1e6 ? (us / 1e3).toFixed(1) + " ms" :
    (us / 1e6).toFixed(1) + " s";
}

function duration(s) {
  if (!isFinite(s)) return "–";
  s = Math.round(s);
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + s % 60 + " s";
  if (s < 172800) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " days";
}

const date = (s) => new Date(1000 * s).toISOString().slice(0, 16).replace("T", " ") + " UTC";

// --- elements ------------------------------------------------------------------------------------

function setText(node, text) {
  text = String(text);
  if (node.textContent !== text) node.textContent = text;
}

function make(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

// Fills a table. A row: {key, cells}, a cell: a text, or {text, bar, className}. Rows keep their
// place and their buttons while they last, so that neither focus nor pointer loses them.
function fill(id, rows, actions, empty) {
  const table = byId(id), body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const kept = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  for (const row of rows) {
    let line = kept.get(row.key);
    kept.delete(row.key);
    if (!line) {
      line = newRow(row, heads, actions);
      body.append(line);
    }
    line.nj = row;
    row.cells.forEach((cell, i) => setCell(line.cells[i], cell));
  }
  for (const line of kept.values()) {
    if (line.contains(document.activeElement)) focusHead(table);
    line.remove();
  }
  if (rows.length === 0) {
    const line = make("tr"), cell = make("td", empty, "none");
    line.dataset.key = "";
    line.setAttribute("role", "row");
    cell.setAttribute("role", "cell");
    cell.colSpan = heads.length;
    line.append(cell);
    body.append(line);
  }
}

// The row that has the focus ends.
function focusHead(table) {
  const head = table.closest("section").querySelector("h2");
  head.tabIndex = -1;
  head.focus();
}

function newRow(row, heads, actions) {
  const line = make("tr");
  line.dataset.key = row.key;
  line.setAttribute("role", "row"); // narrow tables are blocks, which lose their meaning
  row.cells.forEach((cell, i) => {
    const node = make(i === 0 ? "th" : "td", undefined, heads[i].className);
    node.setAttribute("role", i === 0 ? "rowheader" : "cell");
    if (i === 0) node.scope = "row";
    node.dataset.name = heads[i].textContent;
    if (typeof cell === "object" && "bar" in cell) {
      const bar = make("span", undefined, "bar");
      bar.append(make("i"));
      node.append(bar);
    }
    node.append(make("span"));
    line.append(node);
  });
  if (actions) {
    const node = make("td", undefined, "actions");
    node.setAttribute("role", "cell");
    for (const [label, act, name] of actions) {
      const button = make("button", label);
      button.type = "button";
      button.setAttribute("aria-label", label + " " + name(row));
      button.addEventListener("click", () => act(line.nj));
      node.append(button);
    }
    line.append(node);
  }
  return line;
}

function setCell(node, cell) {
  const value = typeof cell === "object" ? cell : {text: cell};
  setText(node.lastChild, value.text);
  node.lastChild.className = value.className || "";
  if ("bar" in value) node.firstChild.firstChild.style.width = 100 * value.bar + "%";
}

function list(id, pairs) {
  const dl = byId(id);
  while (dl.children.length > pairs.length) dl.lastChild.remove();
  pairs.forEach(([name, text, className], i) => {
    let row = dl.children[i];
    if (!row) {
      row = make("div");
      row.append(make("dt"), make("dd"));
      dl.append(row);
    }
    setText(row.firstChild, name);
    setText(row.lastChild, text);
    row.lastChild.className = className || "";
  });
}

function tile(id, text, small) {
  const node = byId(id);
  if (!node.firstElementChild) node.replaceChildren(make("span"), make("small"));
  setText(node.firstChild, text);
  setText(node.lastChild, small);
}

// --- what is shown -------------------------------------------------------------------------------

// A document as it is, or an empty one: the server may be of another version.
const doc = (name) => now[name] || {};
const items = (name, of = name) => doc(name)[of] || [];

function rate(name) {
  const s = doc("stats");
  return before ? Math.max(0, (s[name] - before.stats[name]) / before.seconds) || 0 : 0;
}

function showTraffic() {
  const s = doc("stats"), bytes = items("classes").reduce((sum, c) => sum + c.bytes_per_s, 0);
  sent.push(bytes);
  if (sent.length > 120) sent.shift();
  tile("sent", bits(bytes), bits(rate("tx_bytes")) + " on the wire");
  tile("requests", perSecond(rate("requests")), ["2", "3", "4", "5"].map((d) =>
    d + "xx " + perSecond(rate("status_" + d + "xx"))).join(", "));
  tile("connections", count(s.connections || 0), "HTTP/2 " + count(s.h2_connections || 0) +
    ", HTTP/1 " + count(s.h1_connections || 0));
  tile("running", count(doc("transfers").running || 0), count(s.shape_waiting || 0) +
    " wait for their rate");
  const high = Math.max(...sent, 1), at = 120 - sent.length;
  const points = sent.map((y, i) => (at + i + .5) + " " + (38 - 35 * y / high).toFixed(1));
  byId("spark-line").setAttribute("d", "M" + points.join("L"));
  byId("spark-area").setAttribute("d", "M" + (at + .5) + " 40L" + points.join("L") + "L119.5 40Z");
  setText(byId("spark-max"), bits(high > 1 ? high : 0));
}

function showTransfers() {
  fill("transfers", items("transfers").map((t) => ({
    key: t.id, transfer: t,
    cells: [t.client, t.path || "–", t.class, size(t.bytes_per_s) + "/s", size(t.bytes_done),
      "bytes_left" in t ? size(t.bytes_left) + (t.bytes_per_s > 0 && t.bytes_left > 0 ?
        " (" + duration(t.bytes_left / t.bytes_per_s) + ")" : "") : "–",
      t.why === "none" ? "nothing" : t.why],
  })), [
    ["End", endTransfer, (row) => "the transfer of " + row.cells[1] + " to " + row.cells[0]],
    ["Block", blockClient, (row) => "client " + row.cells[0] + " for ten minutes"],
  ], "No transfer runs.");
}

// A ceiling that is the rate is left out.
function limitText(limits) {
  const isOwn = (key) => key !== "name" && key !== "number" &&
    !(key.endsWith("ceiling") && limits[key] === limits[key.replace("ceiling", "rate")]);
  return Object.entries(limits || {}).filter(([key]) => isOwn(key))
    .map(([key, value]) => key + " " + value).join(", ") || "none";
}

function showLimits() {
  const of = new Map(items("limits", "classes").map((c) => [c.name, c]));
  const classes = items("classes"), sum = (name) => classes.reduce((n, c) => n + c[name], 0);
  const row = (key, name, limits, c) => ({
    key, limits, class: key ? name : "",
    cells: [name, size(c.bytes_per_s) + "/s", limitText(limits), perSecond(c.requests_per_s),
      count(c.open), count(c.waiting), {text: count(c.refused), className: c.refused ? "warn" : ""}],
  });
  const total = {};
  for (const name of ["bytes_per_s", "requests_per_s", "open", "waiting", "refused"])
    total[name] = sum(name);
  fill("limits", [row("", "whole server", doc("limits").server, total),
    ...classes.map((c) => row("class " + c.name, c.name, of.get(c.name), c))],
  [["Change", changeLimit, (r) => "a limit of " + r.cells[0]]], "");
}

function showSaturation() {
  const s = doc("stats");
  fill("lcores", items("shards").map((shard) => {
    const old = before && before.shards[shard.number];
    const busy = old ? shard.cycles_busy - old.cycles_busy : 0;
    const all = old ? busy + shard.cycles_idle - old.cycles_idle : 0;
    const share = all > 0 ? busy / all : 0;
    return {key: String(shard.number), cells: [String(shard.lcore),
      {text: percent(busy, all), bar: share, className: share > .9 ? "bad" : ""},
      perSecond(old ? (shard.requests - old.requests) / before.seconds : 0),
      count(shard.connections)]};
  }), null, "");
  const pools = items("memory", "pools").map((p) => [p.used / p.max, p])
    .filter(([share]) => isFinite(share)).sort((a, b) => b[0] - a[0]);
  const tight = pools.slice(0, 2).map(([share, p]) => ["Pool " + p.name,
    percent(p.used, p.max) + " of " + count(p.max), share > .9 ? "bad" : ""]);
  const missed = items("port", "ports").reduce((n, p) => n + (p.rx_missed || 0), 0);
  const mbufs = items("shards").reduce((n, x) => n + x.rx_mbufs_used + x.tx_mbufs_used, 0);
  list("saturation", [...tight, ["Packet buffers in use", count(mbufs)],
    ["Packets missed by the device", count(missed), missed ? "warn" : ""],
    ["No send buffer, times", count(s.mbuf_none || 0), s.mbuf_none ? "warn" : ""],
    ["Worker tasks waiting", count(Object.values(doc("workers"))
      .reduce((n, kind) => n + (kind.waiting || 0), 0))]]);
}

function showLatency() {
  const l = doc("latency");
  fill("latency", [["First byte", l.ttfb], ["Whole response", l.total],
    ["Waited for its rate", l.throttled], ["TLS handshake on a worker", l.tls_task]]
    .filter(([, h]) => h).map(([name, h]) => ({key: name, cells: [name, ...(h.count ?
      [h.p50_us, h.p90_us, h.p99_us, h.max_us].map(micros) : ["–", "–", "–", "–"])]})), null, "");
}

function showLists() {
  const f = doc("files"), s = doc("stats"), p = doc("server");
  const fromDisk = Math.min(f.read_bytes || 0, s.body_bytes || 0);
  list("files", [["Bytes served from memory", percent((s.body_bytes || 0) - fromDisk, s.body_bytes)],
    ["In memory", size(f.cached_bytes || 0) + " of " + count(f.cached_files || 0) + " files"],
    ["Read 99 %", f.read_ns_p99 ? micros(Math.round(f.read_ns_p99 / 1000)) : "–"],
    ["Reads under way, waiting", count(f.reads_under_way || 0) + ", " + count(f.reads_waiting || 0)],
    ["Requests waiting for files", count(s.file_jobs || 0)],
    ["Refused as too many waited", count(s.file_busy || 0), s.file_busy ? "warn" : ""]]);
  const drops = items("shards").reduce((n, x) => n + x.rx_drops + x.tx_drops, 0);
  list("network", [["Retransmitted segments", percent(s.tcp_retransmit, s.tx_packets)],
    ["Retransmission time-outs", count(s.tcp_rto || 0)],
    ["SYN cookies sent", count(s.tcp_cookie_sent || 0), s.tcp_cookie_sent ? "warn" : ""],
    ["Packets dropped", count(drops)],
    ...items("port", "ports").map((port) => ["Port " + port.number + " (" + port.driver + ")",
      port.link === "up" ? "up" + (port.link_mbps ? ", " + port.link_mbps + " Mbit/s" : "") :
        "no link", port.link === "up" ? "" : "bad"])]);
  const t = Date.now() / 1000;
  list("server", [["Version", p.version || "–"], ["DPDK", p.dpdk || "–"],
    ["Started", p.started_s ? date(p.started_s) : "–"],
    ["Configuration read", p.reloaded_s ? date(p.reloaded_s) : "–"],
    ["Last reload", p.reload_failed ? "failed: the former configuration holds" : "good",
      p.reload_failed ? "bad" : ""],
    ["Upgrade", {run: "none", keep: "another process shares the port",
      take: "takes over", yield: "another process takes over", drain: "ends"}[p.phase] ||
      p.phase || "–"],
    ...(p.certificates || []).filter((c) => c.valid_until_s).map((c) => ["Ends: " + c.file,
      date(c.valid_until_s), c.valid_until_s < t ? "bad" : c.valid_until_s < t + 14 * 86400 ?
        "warn" : ""])]);
  const minutes = Math.floor((t - p.started_s) / 60);
  setText(byId("summary"), (p.version || "") + (p.started_s ? ", runs for " +
    (minutes > 0 ? duration(60 * minutes).replace(" 0 s", "") : "less than a minute") : ""));
  fill("refused", items("refused", "reasons").map((r) => ({key: r.name,
    cells: [r.name.replaceAll("_", " "), count(r.count), r.client + (r.others ? " and others" : "")],
  })), null, "None.");
  fill("blocks", items("blocks").map((b) => ({key: b.network, cells: [b.network,
    b.seconds_left ? duration(b.seconds_left) : "no end"]})),
  [["Unblock", unblock, (row) => row.cells[0]]], "None.");
}

// Announced when it changes, so its elements are kept while it does not.
function showProblems(texts) {
  const ul = byId("problem-list");
  const wanted = texts.length ? texts : ["All is well."];
  byId("problems").classList.toggle("bad", texts.length > 0);
  if (wanted.join("\n") === [...ul.children].map((li) => li.textContent).join("\n")) return;
  ul.replaceChildren(...wanted.map((text) => make("li", text, texts.length ? "" : "fine")));
  document.title = texts.length ? "(" + texts.length + ") nightjar" : "nightjar";
}

function show(state) {
  const seconds = last ? (state.time_ms - last.time_ms) / 1000 : 0;
  before = last && seconds > 0 ? {...last, seconds} : null;
  shown_ms = state.time_ms;
  setStale(false);
  showProblems(items("problems").map((p) => p.text));
  for (const part of [showTraffic, showTransfers, showLimits, showSaturation,
    showLatency, showLists])
    part();
  last = {time_ms: state.time_ms, stats: doc("stats"),
    shards: Object.fromEntries(items("shards").map((s) => [s.number, s]))};
}
let last = null;
let shown_ms = 0; // when the values on the page were made

// Old values are marked, and a change needs new ones.
function setStale(isStale) {
  document.querySelector("main").classList.toggle("stale", isStale);
  for (const button of document.querySelectorAll("td.actions button")) button.disabled = isStale;
}

function lose(problem, state) {
  setLink("lost", state);
  setStale(true);
  showProblems([problem + ": " + (shown_ms ? "values are of " +
    new Date(shown_ms).toISOString().slice(0, 19).replace("T", " ") + " UTC" :
    "there are no values")]);
}

// --- the server ----------------------------------------------------------------------------------

const tokenKey = "nightjar-token";

function headers() {
  const token = sessionStorage.getItem(tokenKey);
  return token ? {Authorization: "Bearer " + token} : {};
}

function setLink(state, text) {
  const node = byId("link");
  node.dataset.state = state;
  setText(node, text);
}

function take(event) {
  const name = /^event: (.*)$/m.exec(event), data = /^data: (.*)$/m.exec(event);
  if (!name || !data) return;
  const value = JSON.parse(data[1]);
  if (name[1] === "state") show(value);
  else now[name[1]] = value;
}

let aborter = new AbortController();

async function follow() {
  const mine = aborter = new AbortController(); // a state comes each second
  const watch = () => setTimeout(() => mine.abort(new Error("no values for 10 s")), 10000);
  let late = watch();
  const response = await fetch("api/v1/events", {headers: headers(), cache: "no-store",
    signal: mine.signal});
  if (response.status === 401) {
    lose("The server asks for a token", "a token is needed");
    if (!byId("token").open) askToken("The server asks for a token.");
    return false;
  }
  if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
  setLink("live", "live");
  last = before = null;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const {value, done} = await reader.read();
    clearTimeout(late);
    late = watch();
    if (done) throw new Error("the connection has ended");
    const events = (text + value).split("\n\n");
    text = events.pop();
    events.forEach(take);
  }
}

let isFollowing = false;

async function stay() {
  if (isFollowing) return;
  isFollowing = true;
  for (let again = true; again;) {
    try {
      again = await follow();
    } catch (error) {
      lose("The server does not answer", "no connection: " + error.message);
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
  isFollowing = false;
}

function setResult(state, text) {
  const result = byId("result");
  result.dataset.state = state;
  setText(result, text);
}

async function post(path, body, done) {
  let response, text, answer;
  try {
    response = await fetch("api/v1/" + path, {method: "POST", headers: headers(), body});
    text = (await response.text()).trim();
  } catch (error) {
    setResult("bad", "No answer: it may have been done (" + error.message + ")");
    return;
  }
  try {
    answer = JSON.parse(text);
  } catch {
    answer = {error: text}; // it is a line of text
  }
  if (!response.ok) { // after 500 a change may be in force
    setResult("bad", (response.status < 500 ? "Nothing has changed: " : "") +
      (answer.error || response.statusText));
  } else if (answer.lcores_missing) {
    setResult("bad", "It may not have been done: " + answer.lcores_missing +
      (answer.lcores_missing === 1 ? " lcore has" : " lcores have") + " not answered.");
  } else {
    setResult("good", done);
  }
}

// --- changes -------------------------------------------------------------------------------------

// Resolves to whether the dialog was left by the button "yes".
function ask(dialog) {
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close",
    () => resolve(dialog.returnValue === "yes"), {once: true}));
}

function confirmed(title, text, yes) {
  setText(byId("confirm-title"), title);
  setText(byId("confirm-text"), text);
  setText(byId("confirm-yes"), yes);
  return ask(byId("confirm"));
}

async function endTransfer(row) {
  const [client, path] = row.cells;
  if (await confirmed("End this transfer?", path + " to " + client + " is cut off. The client may " +
    "begin again.", "End it"))
    post("transfers/end", row.key, "The transfer of " + path + " to " + client + " was ended.");
}

async function blockClient(row) {
  const client = row.cells[0];
  if (await confirmed("Block this client?", client + " is refused for ten minutes, and its running " +
    "transfers are cut off.", "Block it"))
    post("block", client + ",10m", client + " is blocked for ten minutes.");
}

async function unblock(row) {
  if (await confirmed("Unblock this network?", row.key + " is served again.", "Unblock it"))
    post("unblock", row.key, row.key + " is served again.");
}

async function changeLimit(row) {
  const key = byId("limit-key"), value = byId("limit-value"), time = byId("limit-for");
  const show = () => value.value = (row.limits || {})[key.value] || "";
  setText(byId("limit-title"), "Change a limit of " + row.cells[0]);
  key.onchange = show;
  show();
  time.value = "";
  if (!await ask(byId("limit"))) return;
  const change = key.value + "=" + value.value.trim();
  const end = time.value.trim() ? ",for=" + time.value.trim() : "";
  post("limits", (row.class ? "class=" + row.class + "," : "") + change + end,
    "The limit of " + row.cells[0] + " is now " + change.replace("=", " ") + ".");
}

async function askToken(text) {
  if (text) setText(byId("token-text"), text + " It stays in this tab only.");
  byId("token-value").value = "";
  if (!await ask(byId("token"))) return;
  const token = byId("token-value").value.trim();
  if (token && !/^[!-~]{16,512}$/.test(token)) {
    askToken("A token has 16 to 512 characters of ASCII, without spaces.");
    return;
  }
  if (token) sessionStorage.setItem(tokenKey, token);
  else sessionStorage.removeItem(tokenKey);
  aborter.abort();
  stay();
}

for (const button of document.querySelectorAll("dialog .cancel"))
  button.addEventListener("click", () => button.closest("dialog").close("no"));
byId("token-open").addEventListener("click", () => askToken(""));
stay();
