#include "replay/encode.h"

#include <cstdio>

#include "replay/line.h"
#include "replay/words.h"

namespace swapd::replay {

void Encoder::add(std::string& out, const Header& header) {
  std::array<char, 40> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.3f", header.time);
  Line line(out, "header");
  line.add("format", format_name).add("version", format_version).add("swapd", header.swapd);
  line.add("boot", header.boot_id);
  line.raw(",\"time\":");
  line.raw(seconds.data());
  line.add("start_ns", header.start_ns);
}

void Encoder::add(std::string& out, const model::Settings& settings) {
  Line line(out, "settings");
  line.add("records_a_user", settings.records_a_user);
  const auto add_kinds = [&](const model::KindTable& kinds) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const model::KindSettings& kind = kinds.at(i);
      line.raw(i == 0 ? "[{\"kind\":" : ",{\"kind\":");
      line.put(name(static_cast<ResourceKind>(i)));
      line.add("confidence", kind.base_confidence).add("quantum_ns", kind.quantum.count());
      line.add("providers", kind.max_providers).add("feedback", word(kind.feedback)).add("counts", kind.counts);
      line.raw("}");
    }
    line.raw("]");
  };
  line.raw(",\"kinds\":");
  add_kinds(settings.kinds);
  if (!settings.classes.empty()) line.add_list("classes", settings.classes, add_kinds);
}

void Encoder::add(std::string& out, const decide::DonationRules& rules) {
  Line line(out, "rules");
  const auto put_rules = [&](const decide::DonationRules& one) {
    line.raw("\"ceiling\":");
    line.put(one.lending.rt_ceiling);
    line.add("realtime", one.lending.realtime_allowed).add("strict", one.lending.strict);
    line.add("cross_user", one.cross_user).add("linger_ns", one.linger.count());
  };
  line.raw(",");
  put_rules(rules);
  if (rules.classes.empty()) return;
  line.add_list("classes", rules.classes, [&](const decide::DonationRules& one) {
    line.raw("{");
    put_rules(one);
    line.raw("}");
  });
}

void Encoder::add(std::string& out, const Snapshot& snapshot) {
  before_.reset();
  Line(out, "snapshot")
      .add("t", since_start(snapshot.time))
      .add("threads", snapshot.model.threads.size())
      .add("resources", snapshot.model.resources.size())
      .add("kept", snapshot.kept.size());
  for (const model::ImageThread& thread : snapshot.model.threads) {
    Line line(out, "thread");
    line.add("thread", thread.id).add("tgid", thread.tgid).add("uid", thread.uid).add("base", thread.base);
    line.add("state", word(thread.state)).add("since", since_start(thread.since));
    if (thread.class_id != 0) line.add("class", thread.class_id);
    if (thread.state != model::RunState::blocked) continue;
    line.add("call", thread.call).add("awaited", thread.awaited);
    if (!thread.debits.empty())
      line.add_list("debits", thread.debits, [&](const model::ImageDebit& debit) {
        line.raw("[");
        line.put(debit.thread);
        line.raw(",");
        line.put(debit.resource);
        line.raw(",");
        line.put(debit.count);
        line.raw("]");
      });
    if (thread.favoured_resource)
      line.add("favoured_resource", *thread.favoured_resource).add("favoured_path", thread.favoured_path);
  }
  for (const model::ImageResource& resource : snapshot.model.resources) {
    Line line(out, "resource");
    line.add("resource", resource.key);
    if (resource.class_id != 0) line.add("class", resource.class_id);
    if (resource.waited) line.add("waited", true);
    line.add_list("providers", resource.providers, [&](const model::ImageProvider& provider) {
      line.raw("[");
      line.put(provider.thread);
      line.raw(",");
      line.put(provider.confidence);
      line.raw(",");
      line.put(word(provider.evidence));
      line.raw(",");
      line.put(provider.age);
      line.raw("]");
    });
  }
  for (const decide::DonationDecider::Kept& one : snapshot.kept)
    Line(out, "kept")
        .add("requester", one.requester)
        .add("direct", one.direct)
        .add("leaf", one.leaf)
        .add("graph", one.graph);
}

void Encoder::add(std::string& out, const Event& event) {
  const auto begun = [&](Line& line, Time time) -> Line& { return line.add("t", since_start(time)); };
  std::visit(
      [&](const auto& e) {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, Enrolled>) {
          Line line(out, "enrolled");
          begun(line, e.time).add("thread", e.thread).add("tgid", e.tgid).add("uid", e.uid).add("base", e.base);
          if (e.class_id != 0) line.add("class", e.class_id);
        } else if constexpr (std::is_same_v<T, Accessed>) {
          Line line(out, "accessed");
          begun(line, e.time).add("thread", e.thread).add("resource", e.resource).add("evidence", word(e.evidence));
        } else if constexpr (std::is_same_v<T, Released>) {
          Line line(out, "released");
          begun(line, e.time).add("thread", e.thread).add("resource", e.resource);
        } else if constexpr (std::is_same_v<T, Blocked>) {
          Line line(out, "blocked");
          begun(line, e.time).add("thread", e.thread).add("call", e.call).add("awaited", e.awaited);
        } else if constexpr (std::is_same_v<T, Woken>) {
          Line line(out, "woken");
          begun(line, e.time).add("thread", e.thread);
          if (e.by) line.add("by", *e.by);
          if (e.through) line.add("through", *e.through);
          line.add("unrelated", e.unrelated);
        } else if constexpr (std::is_same_v<T, Holders>) {
          Line line(out, "holders");
          begun(line, e.time).add("resource", e.resource).add("evidence", word(e.evidence)).add("threads", e.threads);
        } else if constexpr (std::is_same_v<T, QuantumUsed>) {
          Line line(out, "quantum-used");
          begun(line, e.time).add("requester", e.requester);
        } else {
          static_assert(std::is_same_v<T, Execed> || std::is_same_v<T, Exited>);
          Line line(out, std::is_same_v<T, Execed> ? "execed" : "exited");
          begun(line, e.time).add("thread", e.thread);
        }
      },
      event);
}

void Encoder::add(std::string& out, const Decided& decided) {
  Line line(out, "decided");
  line.add("t", since_start(decided.time)).add("requesters", decided.requesters);
  // Most decisions, one each tick while somebody waits, change nothing.
  if (before_ == decided.donations) {
    line.add("same", true);
    return;
  }
  before_ = decided.donations;
  line.raw(",\"donations\":[");
  for (const decide::Donation& donation : decided.donations) {
    line.raw(&donation == &decided.donations.front() ? "{\"requester\":" : ",{\"requester\":");
    line.put(donation.requester);
    line.add("attr", donation.attr).add("resource", donation.resource).add("path", donation.path);
    line.add("choice", donation.choice).add("quantum_ns", donation.quantum.count());
    line.add("refusal", word(donation.refusal));
    line.raw("}");
  }
  line.raw("]");
}

void Encoder::add(std::string& out, const Forgotten& forgotten) {
  Line(out, "forgotten").add("requester", forgotten.requester);
}

void Encoder::add(std::string& out, const Gap& gap) { Line(out, "gap").add("lost", gap.lost); }

void Encoder::add(std::string& out, const End& end) {
  Line(out, "end").add("events", end.events).add("decisions", end.decisions).add("lost", end.lost);
}

void Encoder::add(std::string& out, const Record& record) {
  std::visit([&](const auto& one) { add(out, one); }, record);
}

}  // namespace swapd::replay
