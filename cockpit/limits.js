// Classes and their limits: typed, or dragged on a scale, and what each class moves, second by second.
import { ask, call, message } from "./bus.js";
import { bytes, drawn, element } from "./dom.js";

const kept = 60;                                   // seconds of what was moved
const least = 64 * 1024, top = 4 * 1024 ** 3;      // of the scale, bytes a second
const steps = 400;

const toStep = (rate) => rate === null ? steps : Math.round(steps * Math.log(Math.max(rate, least) / least) / Math.log(top / least));
const toRate = (step) => step >= steps ? null : Math.round(least * (top / least) ** (step / steps));

// "16MiB", "2.5 GiB", "none" or nothing: null is no limit, undefined is no rate.
export function rateOf(text) {
  const trimmed = text.trim().toLowerCase();
  if (trimmed === "" || trimmed === "off" || trimmed === "none") return null;
  const match = /^([\d.]+)\s*(|b|k|kib|m|mib|g|gib)(\/s)?$/.exec(trimmed);
  if (!match || !Number.isFinite(Number(match[1]))) return undefined;
  const factor = { "": 1, b: 1, k: 1024, kib: 1024, m: 1024 ** 2, mib: 1024 ** 2, g: 1024 ** 3, gib: 1024 ** 3 }[match[2]];
  return Math.round(Number(match[1]) * factor);
}

export const limits = {
  id: "limits",
  title: "Limits",
  moved: new Map(),  // by class: { last, rates }
  dragged: null,     // the control that is being moved is left alone

  async read() {
    const { classes } = await ask("Classes");
    const now = Date.now();
    for (const one of classes) {
      const sum = one.devices.reduce((all, device) => all + device.read_bytes + device.written_bytes, 0);
      const known = this.moved.get(one.name) ?? { last: null, rates: [] };
      if (known.last && now > known.last.now) known.rates.push(Math.max(0, (sum - known.last.sum) * 1000 / (now - known.last.now)));
      known.rates = known.rates.slice(-kept);
      known.last = { now, sum };
      this.moved.set(one.name, known);
    }
    return classes;
  },

  draw(classes, { filter, redraw }) {
    const shown = classes.filter((one) => !filter || one.name.includes(filter));
    if (this.dragged) return null;
    return shown.map((one) => element("section", { class: "card" },
      element("h2", {}, one.name),
      element("p", {}, one.origin === "policy" ? "From the policy." : one.origin === "changed" ? "From the policy, changed since." : "Made with swapctl or here."),
      ...["both", "read", "write"].map((key) => this.control(one, key, redraw)),
      chart(one.name, this.moved.get(one.name)?.rates ?? []),
      element("p", {}, one.devices.map((device) => `${device.device}: ${bytes(device.read_bytes + device.written_bytes)} moved, ${device.delayed_calls} calls delayed`).join("; "))));
  },

  control(one, key, redraw) {
    const now = one.limits.find((limit) => limit.device === "disk" && limit.key === key);
    const rate = now ? rateOf(String(now.value)) ?? null : null;
    const id = `limit-${one.name}-${key}`;
    const title = { both: "Disk", read: "Disk, read", write: "Disk, written" }[key];
    const said = element("output", { for: id }, rate === null ? "no limit" : `${bytes(rate)}/s`);
    const typed = element("input", { type: "text", value: rate === null ? "" : bytes(rate), placeholder: "no limit", size: 10,
                                     "aria-label": `${title} of ${one.name}, a rate as 16 MiB`, "data-focus": `${id}-text` });
    const set = async (value) => {
      try {
        await call("SetClass", "sa(sss)", one.name, [["disk", key, value === null ? "none" : `${Math.max(1, Math.round(value / 1024))} KiB`]]);
        wrong.replaceChildren();
      } catch (error) {
        wrong.replaceChildren(message(error));
      }
      this.dragged = null;
      redraw();
    };
    const wrong = element("span", { role: "alert", class: "error" });
    typed.addEventListener("focus", () => { this.dragged = id; });
    typed.addEventListener("blur", () => { this.dragged = null; });
    typed.addEventListener("change", () => {
      const value = rateOf(typed.value);
      if (value === undefined) wrong.replaceChildren(`“${typed.value}” is no rate: write 16 MiB, or nothing for no limit`);
      else set(value);
    });
    const scale = element("input", { type: "range", id, min: 0, max: steps, value: toStep(rate), "data-focus": id,
                                     "aria-label": `${title} of ${one.name}`, "aria-valuetext": said.textContent });
    scale.addEventListener("input", () => {
      this.dragged = id;
      const value = toRate(Number(scale.value));
      said.textContent = value === null ? "no limit" : `${bytes(value)}/s`;
      scale.setAttribute("aria-valuetext", said.textContent);
    });
    scale.addEventListener("change", () => set(toRate(Number(scale.value))));
    return element("div", { class: "limit" }, element("label", { for: id }, title), scale, said, typed, wrong);
  },
};

function chart(name, rates) {
  const width = 600, height = 90, most = Math.max(...rates, 1);
  const points = rates.map((rate, i) => `${(width * (i + kept - rates.length) / (kept - 1)).toFixed(1)},${(height * (1 - rate / most)).toFixed(1)}`);
  return drawn("svg", { viewBox: `0 -14 ${width} ${height + 16}`, class: "chart", role: "img",
                        "aria-label": `${name} moves ${bytes(rates.at(-1) ?? 0)} a second; most in the last minute: ${bytes(rates.length ? most : 0)}` },
               drawn("text", { x: 0, y: -3 }, rates.length ? `${bytes(most)}/s` : ""),
               drawn("polyline", { points: points.join(" ") }));
}
