// All studies of a coordinator, asked for every other second while the page can be seen.
"use strict";

const list = document.getElementById("studies");
const connection = document.getElementById("connection");

function item(study) {
  const entry = document.createElement("li");
  const link = document.createElement("a");
  link.href = "/study/" + study.id;
  link.textContent = study.name;
  const bar = document.createElement("progress");
  bar.max = Math.max(study.planned, 1);
  bar.value = study.done;
  bar.setAttribute("aria-label", "Trials of " + study.name);
  const note = document.createElement("span");
  note.className = "soft";
  const share = Math.floor((100 * study.done) / Math.max(study.planned, 1));
  note.textContent = study.state + ", " + share + " % of " + study.planned.toLocaleString("en") + " trials";
  entry.append(link, bar, note);
  return entry;
}

async function refresh() {
  if (document.hidden) return;
  try {
    const reply = await fetch("/studies.json");
    if (!reply.ok) throw new Error(String(reply.status));
    const studies = await reply.json();
    list.replaceChildren(...studies.map(item));
    document.getElementById("none").hidden = studies.length > 0;
    connection.textContent = "";
  } catch {
    connection.textContent = "connection lost; trying again";
  }
}

refresh();
setInterval(refresh, 2000);
document.addEventListener("visibilitychange", refresh);
