// Who waits for whom, drawn: threads in columns by their distance from those that nothing waits for, resources on the
// lines between them. The same as text for readers of screens.
import { drawn, element } from "./dom.js";

const width = 180, height = 44, across = 90, down = 18;

// threads: as Why gives them.
export function graph(threads) {
  const nodes = new Map(), lines = [];
  const place = (node, column) => {
    const known = nodes.get(node.tid);
    if (!known || known.column < column) nodes.set(node.tid, { ...node, column });
  };
  const walk = (from, waits, column) => {
    if (column > 8) return;  // a ring
    for (const wait of waits) {
      for (const provider of wait.providers) {
        place(provider, column + 1);
        lines.push({ from: from.tid, to: provider.tid, resource: wait.resource, favoured: provider.favoured, confidence: provider.confidence });
        walk(provider, provider.waiting_for, column + 1);
      }
    }
  };
  for (const thread of threads) {
    if (thread.waiting_for.length === 0 && threads.length > 1) continue;
    if (!nodes.has(thread.tid)) place(thread, 0);
    walk(thread, thread.waiting_for, 0);
  }
  if (lines.length === 0) return element("p", {}, "It waits for no thread that is known.");
  const columns = [];
  for (const node of nodes.values()) {
    columns[node.column] ??= [];
    node.row = columns[node.column].push(node) - 1;
  }
  const x = (node) => node.column * (width + across), y = (node) => node.row * (height + down);
  const all = [...nodes.values()];
  const w = Math.max(...all.map(x)) + width, h = Math.max(...all.map(y)) + height;
  const made = drawn("svg", { viewBox: `-2 -2 ${w + 4} ${h + 4}`, class: "graph", role: "img", "aria-label": lines.map((line) =>
    `${name(nodes.get(line.from))} waits for ${name(nodes.get(line.to))} by ${line.resource}`).join("; ") });
  for (const line of lines) {
    const from = nodes.get(line.from), to = nodes.get(line.to);
    const x1 = x(from) + width, y1 = y(from) + height / 2, x2 = x(to), y2 = y(to) + height / 2;
    made.append(
      drawn("path", { d: `M${x1},${y1} C${x1 + 40},${y1} ${x2 - 40},${y2} ${x2},${y2}`, class: line.favoured ? "favoured" : "likely" }),
      drawn("text", { x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 4, "text-anchor": "middle" }, line.resource.split(":")[0]));
  }
  for (const node of all)
    made.append(drawn("g", { transform: `translate(${x(node)},${y(node)})` },
                      drawn("rect", { width, height, rx: 4 }),
                      drawn("text", { x: 10, y: 19, class: "name" }, node.comm),
                      drawn("text", { x: 10, y: 35 }, String(node.tid))));
  return made;
}

const name = (node) => `${node.comm} (${node.tid})`;
