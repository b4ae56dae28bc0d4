#include "replay/encode.h"

#include <bit>
#include <cmath>
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

void Encoder::add(std::string& out, const decide::DonationConfig& config) {
  const decide::DonationRules& rules = config.rules;
  Line line(out, "rules");
  const auto put_rules = [&](const decide::DonationRules& one) {
    line.raw("\"ceiling\":");
    line.put(one.lending.rt_ceiling);
    line.add("realtime", one.lending.realtime_allowed).add("strict", one.lending.strict);
    line.add("cross_user", one.cross_user).add("linger_ns", one.linger.count());
    line.add("conversation_ns", one.conversation.count());
    if (one.weight_above != 0) line.add("weight_above", one.weight_above);
  };
  line.raw(",");
  put_rules(rules);
  line.add("quota", config.quota);
  if (rules.classes.empty()) return;
  line.add_list("classes", rules.classes, [&](const decide::DonationRules& one) {
    line.raw("{");
    put_rules(one);
    line.raw("}");
  });
}

void Encoder::add(std::string& out, const decide::BudgetConfig& config) {
  Line line(out, "budgets");
  // Shares as parts of a million: whole numbers are the same everywhere.
  const auto put_ceiling = [&](const decide::BudgetConfig::Ceiling& one) {
    line.raw("\"share_ppm\":");
    line.put(static_cast<std::int64_t>(std::llround(one.share * 1e6)));
    line.add("window_ns", one.window.count());
  };
  line.raw(",");
  put_ceiling(config.ceiling);
  line.add("user_time_ns", config.user_time.count()).add("user_window_ns", config.user_window.count());
  if (config.classes.empty()) return;
  line.add_list("classes", config.classes, [&](const decide::BudgetConfig::Ceiling& one) {
    line.raw("{");
    put_ceiling(one);
    line.raw("}");
  });
}

void Encoder::add(std::string& out, const decide::CoschedulingConfig& config) {
  Line line(out, "coscheduling");
  line.add("mode", word(config.mode)).add("realtime", config.realtime).add("cpus", config.cpus);
  if (!config.classes.empty())
    line.add_list("classes", config.classes, [&](decide::CoschedulingConfig::Mode mode) { line.put(word(mode)); });
}

void Encoder::add(std::string& out, const decide::LevelsConfig& config) {
  Line line(out, "levels");
  line.add("nice", config.common.nice).add("share_bits", std::bit_cast<std::int64_t>(config.share));
  if (config.common.display) line.add("display", true);
  if (config.classes.empty()) return;
  line.add_list("classes", config.classes, [&](const decide::ClassLevels& one) { line.put(one.nice); });
  line.add_list("displays", config.classes, [&](const decide::ClassLevels& one) { line.put(one.display ? 1 : 0); });
}

// Its thresholds are the code's.
void Encoder::add(std::string& out, const decide::MemoryConfig& config) {
  Line line(out, "memory-rules");
  line.add("on", config.on).add("stays_ns", config.stays.count()).add("quantum_ns", config.quantum.count());
  const std::vector<bool>& stay = config.stay;
  std::vector<int> classes(stay.begin(), stay.end());
  line.add_list("classes_stay", classes, [&](int one) { line.put(one); });
}

void Encoder::add(std::string& out, const Snapshot& snapshot) {
  before_.reset();
  Line(out, "snapshot")
      .add("t", since_start(snapshot.time))
      .add("threads", snapshot.model.threads.size())
      .add("resources", snapshot.model.resources.size())
      .add("deciders", snapshot.deciders.size());
  for (const model::ImageThread& thread : snapshot.model.threads) {
    Line line(out, "thread");
    line.add("thread", thread.id).add("tgid", thread.tgid).add("uid", thread.uid).add("base", thread.base);
    line.add("state", word(thread.state)).add("since", since_start(thread.since));
    if (thread.class_id != 0) line.add("class", thread.class_id);
    if (thread.weight != usual_weight) line.add("weight", thread.weight);
    if (thread.counts_as) line.add("counts_as", *thread.counts_as);
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
  for (const decide::DeciderState& state : snapshot.deciders) {
    std::vector<std::int64_t> numbers = state.numbers;
    for (const std::uint32_t at : state.times) numbers.at(at) -= start_.time_since_epoch().count();
    Line line(out, "decider");
    line.add("name", state.name).add_list("numbers", numbers, [&](std::int64_t number) { line.put(number); });
  }
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
          if (e.weight != usual_weight) line.add("weight", e.weight);
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
          begun(line, e.time).add("requester", e.requester).add("path", e.path);
        } else if constexpr (std::is_same_v<T, Conversed>) {
          Line line(out, "conversed");
          begun(line, e.time).add("thread", e.thread).add("by", e.by).add("waits", e.waits);
        } else if constexpr (std::is_same_v<T, Ranked>) {
          Line line(out, "ranked");
          begun(line, e.time).add("thread", e.thread);
          if (e.counts_as) line.add("counts_as", *e.counts_as);
        } else {
          static_assert(std::is_same_v<T, Execed> || std::is_same_v<T, Exited>);
          Line line(out, std::is_same_v<T, Execed> ? "execed" : "exited");
          begun(line, e.time).add("thread", e.thread);
        }
      },
      event);
}

void Encoder::add(std::string& out, const decide::Input& input) {
  std::visit(
      [&](const auto& i) {
        using T = std::decay_t<decltype(i)>;
        const auto begun = [&](Line& line) -> Line& { return line.add("t", since_start(i.time)); };
        if constexpr (std::is_same_v<T, decide::TimerFired>) {
          Line line(out, "timer");
          begun(line).add("decider", i.decider).add("kind", word(i.kind)).add("requester", i.requester);
          line.add("serial", i.serial).add("wall_left_ns", i.wall_left.count());
          line.add("unreported", i.unreported).add("gone", i.gone);
        } else if constexpr (std::is_same_v<T, decide::CpuUsed>) {
          Line line(out, "cpu-used");
          begun(line).add("thread", i.thread).add("for", i.on_behalf_of).add("cpu_ns", i.cpu.count());
        } else if constexpr (std::is_same_v<T, decide::WaitEnded>) {
          Line line(out, "wait-ended");
          begun(line).add("requester", i.requester);
          if (i.by) line.add("by", *i.by);
        } else if constexpr (std::is_same_v<T, decide::Delivered>) {
          Line line(out, "delivered");
          begun(line).add("thread", i.thread).add("by_blocking", i.by_blocking);
        } else if constexpr (std::is_same_v<T, decide::Judged>) {
          Line line(out, "judged");
          begun(line).add("thread", i.thread).add("verdict", word(i.verdict));
        } else if constexpr (std::is_same_v<T, decide::Forked>) {
          Line line(out, "forked");
          begun(line).add("parent", i.parent);
        } else if constexpr (std::is_same_v<T, decide::AutoLimitAsked>) {
          Line line(out, "auto-limit-asked");
          begun(line).add("class_name", std::string_view(i.class_name)).add("on", i.on).add("least", i.least);
          if (i.rate) line.add("rate", *i.rate);
          if (i.wait) line.add("wait_bits", std::bit_cast<std::int64_t>(*i.wait));
        } else if constexpr (std::is_same_v<T, decide::ClassFared>) {
          Line line(out, "class-fared");
          begun(line).add("class_name", std::string_view(i.class_name)).add("period_ns", i.period.count());
          line.add("by_calls", i.by_calls).add("by_disk", i.by_disk);
          line.add("waited_bits", std::bit_cast<std::int64_t>(i.waited));
          line.add("others_calls", i.others_calls).add("others_disk", i.others_disk);
        } else if constexpr (std::is_same_v<T, decide::PatienceChanged>) {
          Line line(out, "patience");
          begun(line).add("patience_ns", i.patience.count());
        } else if constexpr (std::is_same_v<T, decide::ThreadProfiled>) {
          Line line(out, "profiled");
          begun(line)
              .add("thread", i.thread)
              .add("job", i.job)
              .add("shares_memory", i.shares_memory)
              .add("fits", i.fits)
              .add("room", i.room)
              .add("window_ns", i.window.count());
          line.add("cpu_ns", i.cpu.count()).add("weight", i.weight).add("group", i.group).add("cpu", i.cpu_number);
          line.add("blocks", i.blocks)
              .add("share_known", i.share_known)
              .add("spinning_bits", std::bit_cast<std::int64_t>(i.spinning));
          line.add("yielding_bits", std::bit_cast<std::int64_t>(i.yielding));
          line.add("inner_bits", std::bit_cast<std::int64_t>(i.inner));
          line.add("upper_bits", std::bit_cast<std::int64_t>(i.upper));
          line.add("group_use_bits", std::bit_cast<std::int64_t>(i.group_use));
          line.add("group_others_bits", std::bit_cast<std::int64_t>(i.group_others));
          line.add("rivals", i.rivals);
          line.add("demand_bits", std::bit_cast<std::int64_t>(i.demand));
        } else if constexpr (std::is_same_v<T, decide::RunTime>) {
          Line line(out, "run-time");
          begun(line).add("thread", i.thread).add("cpu_ns", i.cpu.count()).add("runnable", i.runnable);
        } else if constexpr (std::is_same_v<T, decide::MemoryFared>) {
          Line line(out, "memory");
          begun(line)
              .add("group", std::string_view(i.group))
              .add("window_ns", i.window.count())
              .add("refaults", i.refaults)
              .add("in", i.in)
              .add("out", i.out)
              .add("page_cost_ns", i.page_cost.count())
              .add("room", i.room)
              .add("swap_room", i.swap_room);
        } else if constexpr (std::is_same_v<T, decide::ProcessMemory>) {
          Line line(out, "process-memory");
          begun(line)
              .add("tgid", i.tgid)
              .add("job", i.job)
              .add("group", std::string_view(i.group))
              .add("needed", i.needed)
              .add("resident", i.resident)
              .add("swapped", i.swapped);
        } else if constexpr (std::is_same_v<T, decide::MemoryEvent>) {
          Line line(out, "memory-event");
          begun(line).add("tgid", i.tgid).add("what", word(i.what));
        } else if constexpr (std::is_same_v<T, decide::MessageCalled>) {
          Line line(out, "message-called");
          begun(line).add("thread", i.thread).add("waits", i.waits).add("messages", i.messages);
        } else {
          static_assert(std::is_same_v<T, decide::BudgetUsed>);
          Line line(out, "budget-used");
          begun(line).add("requester", i.requester).add("class", i.requester_class).add("user", i.user);
          line.add("cpu_ns", i.cpu.count());
        }
      },
      input);
}

void Encoder::add(std::string& out, const decide::Turn& turn) {
  Line line(out, "turn");
  line.add("t", since_start(turn.now));
  // Most are neither.
  if (turn.first) line.add("first", true);
  if (turn.tick) line.add("tick", true);
  if (turn.may_ask) line.add("may_ask", true);
  if (turn.must_ask) line.add("must_ask", true);
}

void Encoder::add(std::string& out, const Left& left) { Line(out, "left").add("thread", left.thread); }

void Encoder::add(std::string& out, const Granted& granted) {
  Line line(out, "granted");
  line.add("t", since_start(granted.time));
  // Most turns, one each tick while a requester waits, change nothing.
  if (before_ && before_->grants == granted.grants && before_->limits == granted.limits &&
      before_->away == granted.away) {
    line.add("same", true);
    return;
  }
  before_ = granted;
  line.add_list("grants", granted.grants, [&](const decide::Grant& grant) {
    const decide::RunAs& run = grant.run;
    line.raw("{\"thread\":");
    line.put(run.thread);
    line.add("attr", run.attr).add("by", run.cause.by).add("requester", run.cause.on_behalf_of);
    line.add("resource", run.cause.through).add("user", run.payer.user);
    line.add("requester_class", run.payer.requester_class).add("provider_class", run.payer.provider_class);
    if (run.second_best) line.add("second_best", *run.second_best);
    if (run.doubted) line.add("doubted", true);
    if (run.withheld) line.add("withheld", true);
    if (run.lowers) line.add("lowers", true);
    if (run.lowers_group) line.add("lowers_group", true);
    if (run.slice_only) line.add("slice_only", true);
    if (run.stands) line.add("stands", true);
    if (run.quiet) line.add("quiet", true);
    if (grant.ceiling_until) line.add("ceiling_until", since_start(*grant.ceiling_until));
    if (grant.quota_until) line.add("quota_until", since_start(*grant.quota_until));
    line.raw("}");
  });
  if (!granted.away.empty()) line.add_list("away", granted.away, [&](pid_t tgid) { line.put(tgid); });
  if (granted.limits.empty()) return;
  const std::vector<std::pair<std::string, std::int64_t>> limits(granted.limits.begin(), granted.limits.end());
  line.add_list("limits", limits, [&](const auto& limit) {
    line.raw("[");
    line.put(std::string_view(limit.first));
    line.raw(",");
    line.put(limit.second);
    line.raw("]");
  });
}

void Encoder::add(std::string& out, const Gap& gap) { Line(out, "gap").add("lost", gap.lost); }

void Encoder::add(std::string& out, const End& end) {
  Line(out, "end").add("events", end.events).add("decisions", end.decisions).add("lost", end.lost);
}

void Encoder::add(std::string& out, const Record& record) {
  std::visit([&](const auto& one) { add(out, one); }, record);
}

}  // namespace swapd::replay
