// The policy in force, with file and line of each value, and what swapd has to do without.
import { ask } from "./bus.js";
import { element, table } from "./dom.js";

export const policy = {
  id: "policy",
  title: "Policy",

  async read() {
    const [{ settings }, status] = await Promise.all([ask("Policy"), ask("Status")]);
    return { settings, status };
  },

  draw({ settings, status }, { filter }) {
    const shown = settings.filter((one) => !filter || `${one.table} ${one.key} ${one.value} ${one.where}`.includes(filter));
    const list = (title, lines) => lines.length === 0 ? null
      : element("section", {}, element("h2", {}, title), element("ul", {}, ...lines.map((line) => element("li", {}, line))));
    return [
      list("Warnings", status.warnings),
      list("Missing", status.missing.map((piece) => `${piece.what}: ${piece.why}; ${piece.instead}`)),
      table("Settings", [{ title: "Table" }, { title: "Key" }, { title: "Value" }, { title: "Where" }],
            shown.map((one) => ({ key: `${one.table}.${one.key}`, cells: [one.table, one.key, String(one.value), one.where] })),
            "No setting fits."),
    ].filter((one) => one !== null);
  },
};
