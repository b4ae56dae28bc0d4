// What swapd's words and figures mean, for people.

export const states = { blocked: "waits", running: "runs", runnable: "wants a CPU", unknown: "" };

export function attributes(attr) {
  if (attr.policy === "fifo" || attr.policy === "rr") return `${attr.policy.toUpperCase()} ${attr.rt_priority}`;
  if (attr.policy === "deadline") return "deadline";
  if (attr.policy === "idle" || attr.policy === "batch") return attr.policy;
  return attr.nice === 0 ? "ordinary" : `nice ${attr.nice}`;
}

export function same(one, other) {
  return one.policy === other.policy && one.nice === other.nice && one.rt_priority === other.rt_priority;
}

const sources = { donation: "lent", coscheduling: "parallel job", level: "somebody waits for it", weight: "group weight", base: "its own" };
export const source = (thread) => sources[thread.rank_from] ?? thread.rank_from;

export function jobState(state) {
  return {
    alone: "no other program competes, or it has one busy thread",
    useful: "competes, and wastes little",
    crowded: "more busy threads than CPUs",
    "other-groups": "competes with other control groups",
    "round-robin": "cannot run together; its threads take short turns",
    coscheduled: "its threads run together",
  }[state] ?? state;
}
