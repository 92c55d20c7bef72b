// The page of one study: follows its stream of events and shows what they say. All text goes in as text.
"use strict";

const id = location.pathname.split("/").pop();
const at = (name) => document.getElementById(name);
const count = (value) => value.toLocaleString("en");
const percent = (share) => (100 * share).toFixed(1) + " %";

const MOST_ENTRIES = 200;
const MOST_RATES = 240;
const REDRAW = 1500;

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

// Keeps one element for every key in order, so that what is focused stays so.
function sync(parent, items, key, create, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, place) => {
    const name = key(item);
    let element = old.get(name);
    if (element) {
      old.delete(name);
    } else {
      element = create(item);
      element.dataset.key = name;
    }
    update(element, item);
    if (parent.children[place] !== element) parent.insertBefore(element, parent.children[place] || null);
  });
  old.forEach((element) => element.remove());
}

function duration(seconds) {
  if (seconds < 60) return Math.ceil(seconds) + " s";
  if (seconds < 3600) return Math.floor(seconds / 60) + " min " + Math.floor(seconds % 60) + " s";
  if (seconds < 86400) return Math.floor(seconds / 3600) + " h " + Math.floor((seconds % 3600) / 60) + " min";
  return Math.floor(seconds / 86400) + " d " + Math.floor((seconds % 86400) / 3600) + " h";
}

// The numbers at the top.
function showHead(head) {
  const share = head.planned > 0 ? head.done / head.planned : 0;
  const whole = Math.floor(100 * share) + " %";
  at("name").textContent = head.name;
  showState(head.state);
  at("whole").value = share;
  at("percent").textContent = whole;
  document.title = whole + " · " + head.name + " – regretta";
  at("trials").textContent = count(head.done) + " of " + count(head.planned);
  if (head.failures > 0) at("trials").append(make("span", "soft", count(head.failures) + " failed"));
  at("rate").textContent = head.state === "running" ? count(Math.round(head.rate)) : "–";
  const left = head.state === "running" && head.seconds_left !== null;
  at("left").textContent = left ? duration(head.seconds_left) : "–";
  for (const verdict of ["refuted", "confirmed", "open"]) {
    at(verdict).textContent = head.too_many_rows ? "–" : count(head.verdicts[verdict]);
  }
  if (head.too_many_rows) at("no-claims").textContent = "More than 4096 rows are tested: their evidence is in the report only.";
}

function showState(state) {
  at("state").textContent = state;
  at("state").className = "state " + state;
}

// Throughput, over all that was seen.
let rates = [];
function showRates(more) {
  rates = rates.concat(more);
  if (rates.length > MOST_RATES) rates = rates.filter((_, place) => (rates.length - place) % 2 === 1);
  const first = rates.length > 0 ? rates[0][0] : 0;
  const last = rates.length > 0 ? rates[rates.length - 1][0] : 0;
  const most = Math.max(...rates.map((rate) => rate[1]), 1e-9);
  const place = ([time, rate]) => {
    const x = last > first ? (100 * (time - first)) / (last - first) : 0;
    return x.toFixed(1) + "," + (23 - (22 * rate) / most).toFixed(1);
  };
  at("line").setAttribute("points", rates.map(place).join(" "));
}

function showTrouble(trouble) {
  const lines = [trouble.reason, trouble.alarm, ...trouble.quarantined].filter((line) => line);
  if (trouble.more > 0) lines.push("and " + trouble.more + " more ranges");
  at("troubles").replaceChildren(...lines.map((line) => make("li", "", line)));
  at("trouble").hidden = lines.length === 0;
}

// Claims by form, and how many of their rows are decided.
let chosen = false;
function showClaims(claims) {
  at("no-claims").hidden = claims.length > 0;
  const create = (claim) => {
    const entry = make("li");
    const name = make("span");
    const button = make("button", "", claim.claim);
    button.type = "button";
    button.addEventListener("click", () => {
      chosen = true;
      choose(Number(entry.dataset.view));
      at("coverage").scrollIntoView({ behavior: "smooth" });
    });
    name.append(button, make("span", "form", claim.form ? " " + claim.form : ""));
    const middle = make("div");
    const stack = make("div", "stack");
    stack.setAttribute("role", "img");
    stack.append(make("span", "refuted"), make("span", "confirmed"), make("span", "open"));
    middle.append(stack, make("div", "counts"));
    entry.append(name, middle, make("span", "worst"));
    return entry;
  };
  const update = (entry, claim) => {
    entry.className = claim.refuted > 0 ? "refuted" : "";
    const words = ["refuted", "confirmed", "open"].filter((word) => claim[word] > 0);
    const text = words.map((word) => claim[word] + " " + word).join(", ");
    const [stack, counts] = entry.children[1].children;
    stack.setAttribute("aria-label", text);
    ["refuted", "confirmed", "open"].forEach((word, place) => {
      stack.children[place].style.flexGrow = claim[word];
    });
    counts.textContent = text + (claim.exploratory > 0 ? " (" + claim.exploratory + " exploratory)" : "");
    const worst = claim.worst;
    if (!worst) return;
    entry.dataset.view = worst.view;
    entry.children[2].replaceChildren(
      make("b", "", percent(worst.coverage)),
      " at worst, required " + percent(worst.required),
      make("span", "soft", worst.cell + ", t = " + worst.t + ", δ = " + worst.delta),
    );
  };
  sync(at("claims"), claims, (claim) => claim.claim + " " + claim.form, create, update);
  // The first refutation is what a reader wants to see.
  const first = claims[0];
  if (!chosen && first && first.refuted > 0 && first.worst) {
    chosen = true;
    choose(first.worst.view);
  }
}

// Which coverage is shown.
let views = [];
let wanted = 0;
const claimName = (view) => view.claim + (view.at ? " at " + view.at : "");

function options(select, names, chosen) {
  const shown = [...select.options].map((option) => option.textContent);
  if (shown.length !== names.length || names.some((name, place) => name !== shown[place])) {
    select.replaceChildren(...names.map((name) => make("option", "", name)));
  }
  select.selectedIndex = names.indexOf(chosen);
}

function choose(place) {
  wanted = Math.min(Math.max(place, 0), views.length - 1);
  const view = views[wanted];
  at("coverage").hidden = !view;
  if (!view) return;
  options(at("claim"), [...new Set(views.map(claimName))], claimName(view));
  const groups = views.filter((other) => claimName(other) === claimName(view)).map((other) => other.group);
  options(at("group"), groups, view.group);
  draw();
}

function chooseByName(claim, group) {
  chosen = true;
  const exact = views.findIndex((view) => claimName(view) === claim && view.group === group);
  choose(exact >= 0 ? exact : views.findIndex((view) => claimName(view) === claim));
}
at("claim").addEventListener("change", () => chooseByName(at("claim").value, at("group").value));
at("group").addEventListener("change", () => chooseByName(at("claim").value, at("group").value));

let drawing = false;
let drawAgain = false;
let timer = null;

// Asks for the panels of the chosen view, one request at a time.
async function draw() {
  if (drawing) {
    drawAgain = true;
    return;
  }
  drawing = true;
  const view = views[wanted];
  try {
    const reply = await fetch("/coverage/" + id + "/" + wanted);
    if (reply.ok) {
      const shown = await reply.json();
      if (view === views[wanted] && shown.claim === view.claim && shown.group === view.group) showPanels(shown);
    }
  } catch {
    // The stream of events tells that the connection is lost.
  }
  drawing = false;
  if (drawAgain) {
    drawAgain = false;
    draw();
  }
}

// Draws soon, but not too often.
function redraw(now) {
  if (views.length === 0) return;
  if (now) {
    clearTimeout(timer);
    timer = null;
    draw();
  } else if (timer === null && !document.hidden) {
    timer = setTimeout(() => {
      timer = null;
      draw();
    }, REDRAW);
  }
}

function panelLine(form) {
  const line = make("div", "", form.form + ": ");
  const part = (word, ts) => {
    if (ts.length === 0) return;
    if (line.children.length > 0) line.append("; ");
    const all = form.refuted.length + form.confirmed.length + form.open.length;
    const where = ts.length === all && all > 1 ? "every t" : "t = " + ts.join(", ");
    line.append(make("span", word, word + " at " + where));
  };
  part("refuted", form.refuted);
  part("confirmed", form.confirmed);
  part("open", form.open);
  return line;
}

function showPanels(shown) {
  at("statement").textContent = shown.statement;
  const create = () => {
    const figure = make("figure");
    figure.append(make("h3"), make("figcaption"), make("img"));
    return figure;
  };
  const update = (figure, panel) => {
    const [title, caption, image] = figure.children;
    const any = (word) => panel.forms.some((form) => form[word].length > 0);
    figure.className = any("refuted") ? "refuted" : any("open") ? "" : "confirmed";
    title.textContent = panel.title;
    caption.replaceChildren(...panel.forms.map(panelLine));
    image.alt = "Coverage of " + shown.claim + " against t, " + panel.title;
    const source = "data:image/svg+xml," + encodeURIComponent(panel.svg);
    if (image.src !== source) image.src = source;
  };
  sync(at("panels"), shown.panels, (panel) => shown.claim + shown.group + panel.title, create, update);
  at("more-panels").textContent = shown.more > 0 ? "There is no room for " + shown.more + " more panels." : "";
}

// The feed, newest first.
function showFeed(feed) {
  const list = at("feed");
  if (feed.all) list.replaceChildren();
  for (const entry of feed.entries) list.prepend(feedItem(entry));
  while (list.children.length > MOST_ENTRIES) list.lastElementChild.remove();
  at("no-feed").hidden = list.children.length > 0;
}

function feedItem(entry) {
  const item = make("li", entry.verdict);
  const time = make("time", "", (entry.late ? "by " : "") + new Date(entry.noticed).toLocaleTimeString("en-GB"));
  time.dateTime = new Date(entry.noticed).toISOString();
  const sign = entry.verdict === "refuted" ? "✕ refuted " : "✓ confirmed ";
  item.append(time, make("span", "word", sign), make("span", "", entry.claim + (entry.form ? " " + entry.form : "")));
  const where = entry.cell + ", t = " + entry.t + ", δ = " + entry.delta + (entry.at ? ", at " + entry.at : "") +
    ": holds in " + percent(entry.coverage) + " of " + count(entry.trials) + " trials, required " + percent(entry.required);
  item.append(make("span", "where", where));
  return item;
}

at("only-refuted").addEventListener("change", (event) => {
  at("feed").classList.toggle("only-refuted", event.target.checked);
});

function showCells(cells) {
  at("cells-count").textContent = count(cells.closed) + " of " + count(cells.total) + " done";
  const create = (cell) => {
    const item = make("li");
    const bar = make("progress");
    bar.setAttribute("aria-label", "Trials of " + cell.label);
    item.append(make("span", "", cell.label), make("span", "note"), bar);
    return item;
  };
  const update = (item, cell) => {
    const [, note, bar] = item.children;
    note.textContent = count(cell.done) + " / " + count(cell.planned) + (cell.decided ? ", decided early" : "");
    if (cell.failures > 0) note.append(make("span", "failed", " " + count(cell.failures) + " failed"));
    bar.max = Math.max(cell.planned, 1);
    bar.value = cell.done;
  };
  sync(at("cells"), cells.cells, (cell) => cell.label, create, update);
  const hidden = cells.total - cells.cells.length;
  at("more-cells").textContent = hidden > 0 ? "and " + count(hidden) + " more" : "";
}

function showWorkers(workers) {
  at("workers-count").textContent = count(workers.total);
  const rows = workers.workers.map((worker) => {
    const row = make("tr");
    const age = worker.heartbeat_ms / 1000;
    const name = worker.name + (worker.slots > 1 ? " × " + worker.slots : "");
    const heartbeat = make("td", "number" + (age > 15 ? " late" : ""), age.toFixed(age < 10 ? 1 : 0) + " s ago");
    row.append(make("td", "", name), make("td", "number", worker.rate.toFixed(worker.rate < 10 ? 1 : 0)), heartbeat);
    return row;
  });
  at("workers").replaceChildren(...rows);
}

at("another").addEventListener("click", async () => {
  try {
    const reply = await fetch("/enter", { method: "POST" });
    at("another-link").textContent = (await reply.text()).trim() + (reply.ok ? " (works once)" : "");
  } catch {
    at("another-link").textContent = "The server cannot be reached.";
  }
});

// The stream.
function connected(text, lost) {
  at("connection").textContent = text;
  at("connection").classList.toggle("lost", lost);
}

const events = new EventSource("/events/" + id);
const on = (name, show) => events.addEventListener(name, (event) => show(JSON.parse(event.data)));
let state = "";

events.addEventListener("open", () => {
  rates = [];
  connected("live", false);
});
events.addEventListener("error", () => {
  const text = events.readyState === EventSource.CLOSED
    ? "closed by the server: reload, or open a new link"
    : "connection lost; trying again";
  connected(text, true);
});
on("head", (head) => {
  showHead(head);
  // What comes with a new state may be the last, and is not to wait.
  redraw(head.state !== state);
  state = head.state;
});
on("rates", showRates);
on("trouble", showTrouble);
on("claims", showClaims);
on("views", (all) => {
  views = all;
  choose(wanted);
});
on("feed", showFeed);
on("cells", showCells);
on("workers", showWorkers);
on("end", (end) => {
  events.close();
  clearTimeout(timer);
  connected("ended", false);
  showState(end.state);
  at("ending-title").textContent = end.state === "done" ? "Finished" : "The study is " + end.state;
  at("ending-text").textContent = end.message;
  at("ending").className = end.state === "done" ? "notice" : "notice bad";
  at("ending").hidden = false;
  at("another").disabled = true;
});
