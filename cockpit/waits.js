// Who waits for whom just now: a tree under each thread that waits.
import { ask } from "./bus.js";
import { element } from "./dom.js";
import { showWhy } from "./programs.js";

export const waits = {
  id: "waits",
  title: "Waits",

  async read() {
    return ask("Graph");
  },

  draw(graph, { filter }) {
    const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
    const next = new Map(), awaited = new Set();
    const lead = (from, to, weight) => {
      if (!next.has(from)) next.set(from, []);
      next.get(from).push({ to, weight });
      awaited.add(to);
    };
    for (const edge of graph.edges) {
      if (edge.type === "provides") lead(edge.to, edge.from, edge.confidence);  // a resource is awaited of its providers
      else lead(edge.from, edge.to, 0);
    }
    for (const all of next.values()) all.sort((one, other) => other.weight - one.weight);
    const roots = graph.nodes.filter((node) => node.type === "thread" && next.has(node.id) && !awaited.has(node.id));
    const shown = roots.filter((node) => !filter || node.label.includes(filter));
    if (shown.length === 0) return element("p", { class: "none" }, "No managed thread waits for another one.");
    const branch = (id, path) => {
      const node = nodes.get(id);
      if (!node || path.has(id)) return element("li", {}, "… and so on: a ring");
      const under = (next.get(id) ?? []).map((edge) => branch(edge.to, new Set([...path, id])));
      const tid = node.type === "thread" ? Number(/(\d+)$/.exec(node.label)?.[1] ?? 0) : 0;
      const label = tid > 0
        ? element("button", { class: "plain", "data-focus": `wait-${node.id}`, onclick: () => showWhy(tid) }, node.label)
        : element("span", { class: "resource" }, node.label);
      return element("li", {}, label, under.length > 0 ? element("ul", {}, ...under) : null);
    };
    return element("ul", { class: "tree" }, ...shown.map((node) => branch(node.id, new Set())));
  },
};
