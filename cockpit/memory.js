// Parallel jobs, and programs that were put away for want of memory.
import { ask, call, message } from "./bus.js";
import { bytes, duration, element, table } from "./dom.js";
import { showWhy } from "./programs.js";
import { jobState } from "./words.js";

export const memory = {
  id: "memory",
  title: "Jobs and memory",

  async read() {
    return ask("Status");
  },

  draw(status, { redraw }) {
    const percent = (value) => `${Math.round(100 * value)} %`;
    const jobs = table("Parallel jobs",
      [{ title: "Job" }, { title: "State" }, { title: "Threads", class: "number" }, { title: "Waste", class: "number" }, { title: "Due", class: "number" },
       { title: "Slots", class: "number" }, { title: "Refused", class: "number" }, { title: "Fairness", class: "number" }],
      status.jobs.map((job) => ({ key: job.id, cells: [
        element("button", { class: "plain", "data-focus": `job-${job.id}`, onclick: () => showWhy(job.members[0]?.tid ?? job.id) }, job.comm),
        jobState(job.state), job.members.length, percent(job.waste), percent(job.due), job.calls_granted, job.calls_refused, job.fairness.toFixed(2)] })),
      "No parallel job is known.");
    const away = table("Programs that were put away",
      [{ title: "Program" }, { title: "State" }, { title: "Since" }, { title: "Swapped out", class: "number" }, { title: "" }],
      status.memory.away.map((one) => ({ key: one.pid, cells: [
        `${one.comm} (${one.pid})`, one.state, duration(one.since_s * 1000), bytes(one.swapped_out_bytes),
        element("button", {
          "data-focus": `thaw-${one.pid}`,
          onclick: async (event) => {
            try {
              await call("Thaw", "u", one.pid);
              redraw();
            } catch (error) {
              event.target.after(element("span", { role: "alert", class: "error" }, message(error)));
            }
          },
        }, "Bring it back")] })),
      status.memory.on ? "None: no program was put away." : "The policy does not ask for it ([memory] on = true).");
    const thrashing = status.memory.groups.filter((group) => group.thrashes).map((group) => group.group || "the machine");
    return [element("h2", {}, "Parallel jobs"), jobs, element("h2", {}, "Memory"),
            element("p", { role: "status" }, thrashing.length > 0 ? `Thrashing: ${thrashing.join(", ")}.` : "Nothing thrashes."), away];
  },
};
