// The last minute of loans and inversions, as bars from left to right, and as a list for readers of screens.
import { drawn, element } from "./dom.js";

const span_ms = 60000, height = 22, left = 170, width = 640, most = 40;

export const timeline = {
  id: "timeline",
  title: "Timeline",
  loans: [],  // { requester, provider, resource, begun, ended }
  lost: 0,

  // A signal of swapd's.
  told(signal, values, now = Date.now()) {
    const [requester, , provider, , resource] = values;
    const key = `${values[1]}-${values[3]}-${resource}`;
    if (signal === "InversionFound" || signal === "DonationBegun") {
      let loan = this.loans.find((one) => one.key === key && !one.ended);
      if (!loan) {
        loan = { key, requester, provider, resource, begun: now, ended: 0, lent: null };
        this.loans.push(loan);
      }
      if (signal === "DonationBegun") loan.lent ??= now;
    } else if (signal === "DonationEnded") {
      const loan = this.loans.find((one) => one.key === key && !one.ended);
      if (loan) loan.ended = now;
    } else if (signal === "SignalsLost") {
      this.lost += Number(values[0]);
    }
    this.loans = this.loans.filter((one) => (one.ended || now) > now - span_ms).slice(-500);
  },

  async read() {
    return null;
  },

  draw(_data, { filter, now = Date.now() }) {
    const shown = this.loans.filter((loan) => !filter || loan.resource.includes(filter) || [loan.requester, loan.provider].join().includes(filter));
    const rows = new Map();
    for (const loan of shown.slice().reverse()) {
      const pair = `${loan.requester} → ${loan.provider}`;
      if (!rows.has(pair) && rows.size < most) rows.set(pair, []);
      rows.get(pair)?.push(loan);
    }
    const note = element("p", {}, `${shown.length} in the last minute`, this.lost > 0 ? `; ${this.lost} more came too fast to be told` : "", ".");
    if (rows.size === 0) return [note];
    const x = (time) => left + width * Math.max(0, 1 - (now - time) / span_ms);
    const made = drawn("svg", { viewBox: `0 0 ${left + width} ${rows.size * height + 20}`, class: "timeline", role: "img",
                                "aria-label": `Loans of the last minute: ${[...rows.keys()].join(", ")}` });
    let row = 0;
    for (const [pair, loans] of rows) {
      const y = row++ * height;
      made.append(drawn("text", { x: 0, y: y + 15 }, pair));
      for (const loan of loans) {
        const from = x(loan.begun), to = x(loan.ended || now);
        made.append(drawn("rect", { x: from, y: y + 4, width: Math.max(to - from, 2), height: height - 8, class: loan.lent ? "loan" : "inversion" },
                          drawn("title", {}, `${loan.resource}: ${Math.round((loan.ended || now) - loan.begun)} ms`)));
      }
    }
    for (let seconds = 0; seconds <= 60; seconds += 15)
      made.append(drawn("text", { x: left + width * (1 - seconds / 60), y: rows.size * height + 14, "text-anchor": seconds === 0 ? "end" : "middle" },
                        seconds === 0 ? "now" : `${seconds} s`));
    return [note, made];
  },
};
