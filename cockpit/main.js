// The page: tabs, a filter, and what the open view asks swapd for once a second while the page is seen.
import { ask, connect, follow, message } from "./bus.js";
import { element, show } from "./dom.js";
import { limits } from "./limits.js";
import { memory } from "./memory.js";
import { policy } from "./policy.js";
import { programs } from "./programs.js";
import { timeline } from "./timeline.js";
import { waits } from "./waits.js";

const views = [programs, waits, timeline, limits, memory, policy];
const every_ms = 1000;
let current = programs, filter = "", data = null, following = null;

const place = () => document.getElementById("view");

function drawTabs() {
  const tabs = document.getElementById("tabs");
  const step = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    open(views[(views.indexOf(current) + by + views.length) % views.length]);
    tabs.querySelector('[aria-selected="true"]').focus();
  };
  show(tabs, [
    ...views.map((view) => element("button", {
      role: "tab", id: `tab-${view.id}`, "aria-selected": view === current, "aria-controls": "view", "data-focus": `tab-${view.id}`,
      tabindex: view === current ? 0 : -1, onclick: () => open(view), onkeydown: step,
    }, view.title)),
  ]);
  place().setAttribute("role", "tabpanel");
  place().setAttribute("aria-labelledby", `tab-${current.id}`);
}

function drawFilter() {
  const input = element("input", { type: "search", placeholder: "Filter", "aria-label": "Filter", value: filter,
                                   oninput: (event) => { filter = event.target.value; redraw(); } });
  document.querySelector("header").append(input);
}

function open(view) {
  current = view;
  data = null;
  window.location.hash = view.id;
  drawTabs();
  show(place(), element("p", {}, "…"));
  refresh();
}

function redraw() {
  if (data === null && current !== timeline) return;
  const made = current.draw(data, { filter, redraw: refresh });
  if (made !== null) show(place(), made);
}

function notice(text) {
  show(document.getElementById("notices"), text ? [element("p", { role: "alert", class: "notice" }, text)] : []);
}

async function refresh() {
  const view = current;
  try {
    const read = await view.read();
    if (view !== current) return;
    data = read;
    notice("");
    redraw();
  } catch (error) {
    notice(message(error));
  }
}

async function summarize() {
  try {
    const status = await ask("Status");
    document.getElementById("summary").textContent =
      `${status.managed_processes} programs, ${status.donations_active} loans${status.paused ? "; paused" : ""}; swapd ${status.version} observes with ${status.observer}`;
  } catch {
    document.getElementById("summary").textContent = "";
  }
}

function connected(problem) {
  if (problem) return notice(message({ problem }));
  following?.();
  following = follow((signal, values) => timeline.told(signal, values));
  refresh();
  summarize();
}

current = views.find((view) => `#${view.id}` === window.location.hash) ?? programs;
drawTabs();
drawFilter();
connect(connected);
setInterval(() => {
  if (document.hidden || document.getElementById("detail").open) return;
  refresh();
  summarize();
}, every_ms);
