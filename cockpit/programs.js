// The table of managed threads, one row a process until it is opened, and why of one.
import { ask, call, message } from "./bus.js";
import { bytes, duration, element, table } from "./dom.js";
import { graph } from "./graph.js";
import { attributes, same, source, states } from "./words.js";

const columns = [
  { title: "Program" }, { title: "PID", class: "number" }, { title: "Class" }, { title: "Priority" }, { title: "From" },
  { title: "State" }, { title: "Waits for" }, { title: "" },
];

export const programs = {
  id: "programs",
  title: "Programs",
  open: new Set(),  // pids whose threads are shown

  async read() {
    return (await ask("Processes")).threads;
  },

  draw(threads, { filter, redraw }) {
    const processes = new Map();
    for (const thread of threads) {
      if (filter && ![thread.comm, thread.class, String(thread.pid)].some((text) => text.includes(filter))) continue;
      if (!processes.has(thread.pid)) processes.set(thread.pid, []);
      processes.get(thread.pid).push(thread);
    }
    const rows = [];
    for (const [pid, all] of processes) {
      const shown = this.open.has(pid) ? all : [foremost(all)];
      shown.forEach((thread, i) => rows.push(this.row(thread, i === 0 ? all : null, redraw)));
    }
    return table("Managed programs", columns, rows, filter ? "No program fits." : "No program is managed: start one with “swapctl run”, or write a rule.");
  },

  row(thread, all, redraw) {
    const lent = !same(thread.base, thread.effective);
    const opened = all && all.length > 1
      ? element("button", {
          class: "plain", "aria-expanded": this.open.has(thread.pid), "data-focus": `open-${thread.pid}`,
          "aria-label": `${all.length} threads of ${thread.comm}`,
          onclick: () => {
            this.open[this.open.has(thread.pid) ? "delete" : "add"](thread.pid);
            redraw();
          },
        }, this.open.has(thread.pid) ? "▾" : "▸", ` ${all.length}`)
      : null;
    return {
      key: `${thread.pid}-${thread.tid}`,
      attributes: { class: lent ? "lent" : null },
      cells: [
        [thread.comm, opened ? " " : null, opened],
        all ? thread.pid : thread.tid,
        thread.class,
        lent ? `${attributes(thread.effective)} (own: ${attributes(thread.base)})` : attributes(thread.base),
        source(thread),
        [states[thread.state] ?? thread.state, thread.since_known ? ` ${duration(thread.since_ms)}` : ""],
        thread.waiting_for.join(", "),
        element("button", {
          "data-focus": `why-${thread.tid}`, "aria-label": `Why ${thread.comm}, thread ${thread.tid}`,
          onclick: () => showWhy(thread.tid),
        }, "Why"),
      ],
    };
  },
};

// The thread that says most of its process: one that has a loan, else one that waits, else the first.
function foremost(threads) {
  return threads.find((thread) => !same(thread.base, thread.effective)) ??
         threads.find((thread) => thread.waiting_for.length > 0) ?? threads[0];
}

export async function showWhy(pid) {
  const dialog = document.getElementById("detail");
  const close = element("button", { onclick: () => dialog.close() }, "Close");
  try {
    const { threads } = await ask("Why", "u", pid);
    const thread = threads.find((one) => one.tid === pid) ?? threads[0];
    dialog.replaceChildren(
      element("h2", { id: "detail-title" }, `${thread.comm} (${thread.tid})`),
      ...sentences(thread).map((text) => element("p", {}, text)),
      graph(threads.slice(0, 20)),
      element("div", { class: "actions" }, ...actions(thread, dialog), close));
  } catch (error) {
    dialog.replaceChildren(element("h2", { id: "detail-title" }, `Process ${pid}`), element("p", {}, message(error)), close);
  }
  if (!dialog.open) dialog.showModal();
}

function sentences(thread) {
  const out = [];
  out.push(same(thread.base, thread.effective)
    ? `It has its own priority, ${attributes(thread.base)}.`
    : `It has ${attributes(thread.effective)} just now (${source(thread)}); its own is ${attributes(thread.base)}.`);
  if (thread.donated_by.length > 0) out.push(`Threads that wait for it: ${thread.donated_by.join(", ")}.`);
  if (thread.donation.active && !thread.donation.effective) out.push(`Its loan does not help: ${thread.donation.reason}.`);
  if (thread.level) {
    const awaited = thread.level.awaited ? `, awaited ${thread.level.awaited} ${duration(thread.level.since_ms)} ago` : "";
    out.push(`Level ${thread.level.level} of 16 (its own is ${thread.level.base})${awaited}.`);
  }
  if (thread.job) {
    const rest = Math.round(100 * thread.job.waiting);
    out.push(`One of ${thread.job.threads} threads of the parallel job ${thread.job.comm}; it waits on its CPU for ${rest} % of its CPU time.`);
  }
  if (thread.away) out.push(`Put away for want of memory: ${bytes(thread.away.swapped_out_bytes)} are swapped out.`);
  return out;
}

function actions(thread, dialog) {
  const act = (label, method) => element("button", {
    onclick: async (event) => {
      try {
        await call(method, "u", thread.pid);
        dialog.close();
      } catch (error) {
        event.target.after(element("span", { role: "alert", class: "error" }, message(error)));
      }
    },
  }, label);
  return [thread.away ? act("Bring it back", "Thaw") : null, act("Release", "Release")];
}
