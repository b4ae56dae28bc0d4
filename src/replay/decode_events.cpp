#include "replay/decode_events.h"

#include <bit>

namespace swapd::replay {

std::optional<decide::Input> input(std::string_view type, Fields& f) {
  if (type == "timer")
    return decide::TimerFired{.time = f.time("t"),
                              .decider = f.number<std::uint32_t>("decider"),
                              .kind = f.word("kind", timer_words),
                              .requester = f.thread("requester"),
                              .serial = f.number<std::uint64_t>("serial"),
                              .wall_left = f.duration("wall_left_ns"),
                              .unreported = f.flag("unreported"),
                              .gone = f.flag("gone")};
  if (type == "cpu-used")
    return decide::CpuUsed{f.time("t"), f.thread("thread"), f.thread("for"), f.duration("cpu_ns")};
  if (type == "wait-ended") {
    decide::WaitEnded found{.time = f.time("t"), .requester = f.thread("requester"), .by = {}};
    if (f.has("by")) found.by = f.thread("by");
    return found;
  }
  if (type == "delivered") return decide::Delivered{f.time("t"), f.thread("thread"), f.flag("by_blocking")};
  if (type == "judged") return decide::Judged{f.time("t"), f.thread("thread"), f.word("verdict", verdict_words)};
  if (type == "forked") return decide::Forked{f.time("t"), f.thread("parent")};
  if (type == "auto-limit-asked") {
    decide::AutoLimitAsked found{.time = f.time("t"),
                                 .class_name = f.text("class_name"),
                                 .on = f.flag("on"),
                                 .least = f.number<std::int64_t>("least"),
                                 .rate = {},
                                 .wait = {}};
    if (f.has("rate")) found.rate = f.number<std::int64_t>("rate");
    if (f.has("wait_bits")) found.wait = std::bit_cast<double>(f.number<std::int64_t>("wait_bits"));
    return found;
  }
  if (type == "class-fared")
    return decide::ClassFared{.time = f.time("t"),
                              .class_name = f.text("class_name"),
                              .period = f.duration("period_ns"),
                              .by_calls = f.number<std::int64_t>("by_calls"),
                              .by_disk = f.number<std::int64_t>("by_disk"),
                              .waited = std::bit_cast<double>(f.number<std::int64_t>("waited_bits")),
                              .others_calls = f.number<std::int64_t>("others_calls"),
                              .others_disk = f.number<std::int64_t>("others_disk")};
  if (type == "budget-used")
    return decide::BudgetUsed{f.time("t"), f.thread("requester"), f.number<ClassId>("class"),
                              f.number<std::uint32_t>("user"), f.duration("cpu_ns")};
  if (type == "profiled") {
    const auto real = [&](const char* name) { return std::bit_cast<double>(f.number<std::int64_t>(name)); };
    return decide::ThreadProfiled{.time = f.time("t"),
                                  .thread = f.thread("thread"),
                                  .job = f.number<std::uint64_t>("job"),
                                  .shares_memory = f.flag("shares_memory"),
                                  .fits = f.flag("fits"),
                                  .room = f.number<std::uint64_t>("room"),
                                  .window = f.duration("window_ns"),
                                  .cpu = f.duration("cpu_ns"),
                                  .spinning = real("spinning_bits"),
                                  .yielding = real("yielding_bits"),
                                  .share_known = f.flag("share_known"),
                                  .inner = real("inner_bits"),
                                  .upper = real("upper_bits"),
                                  .group_use = real("group_use_bits"),
                                  .group_others = real("group_others_bits"),
                                  .weight = f.number<std::uint32_t>("weight"),
                                  .group = f.number<std::uint64_t>("group"),
                                  .cpu_number = f.number<std::int32_t>("cpu"),
                                  .blocks = f.number<std::uint64_t>("blocks"),
                                  .rivals = f.flag("rivals"),
                                  .demand = real("demand_bits")};
  }
  if (type == "run-time")
    return decide::RunTime{f.time("t"), f.thread("thread"), f.duration("cpu_ns"), f.flag("runnable")};
  if (type == "memory")
    return decide::MemoryFared{.time = f.time("t"),
                               .group = f.text("group"),
                               .window = f.duration("window_ns"),
                               .refaults = f.number<std::uint64_t>("refaults"),
                               .in = f.number<std::uint64_t>("in"),
                               .out = f.number<std::uint64_t>("out"),
                               .page_cost = f.duration("page_cost_ns"),
                               .room = f.number<std::int64_t>("room"),
                               .swap_room = f.number<std::int64_t>("swap_room")};
  if (type == "process-memory")
    return decide::ProcessMemory{.time = f.time("t"),
                                 .tgid = f.number<pid_t>("tgid"),
                                 .job = f.number<std::uint64_t>("job"),
                                 .group = f.text("group"),
                                 .needed = f.flag("needed"),
                                 .resident = f.number<std::int64_t>("resident"),
                                 .swapped = f.number<std::int64_t>("swapped")};
  if (type == "memory-event")
    return decide::MemoryEvent{f.time("t"), f.number<pid_t>("tgid"), f.word("what", decide::memory_event_words)};
  if (type == "message-called")
    return decide::MessageCalled{f.time("t"), f.thread("thread"), f.flag("waits"), f.number<std::uint32_t>("messages")};
  if (type == "patience") {
    const decide::PatienceChanged found{f.time("t"), f.duration("patience_ns")};
    if (found.patience <= Duration::zero()) f.values().wrong("patience_ns", "above 0");
    return found;
  }
  return std::nullopt;
}

std::optional<Event> event(std::string_view type, Fields& f) {
  if (type == "enrolled") {
    Enrolled e{f.time("t"),
               f.thread("thread"),
               f.number<pid_t>("tgid"),
               f.number<std::uint32_t>("uid"),
               f.attr("base"),
               f.number_or<ClassId>("class", 0),
               f.number_or<Weight>("weight", usual_weight)};
    if (!e.thread.valid()) f.values().wrong("thread", "a thread id");
    return e;
  }
  if (type == "accessed")
    return Accessed{f.time("t"), f.thread("thread"), f.resource("resource"), f.word("evidence", evidence_words)};
  if (type == "released") return Released{f.time("t"), f.thread("thread"), f.resource("resource")};
  if (type == "blocked")
    return Blocked{f.time("t"), f.thread("thread"), f.number<std::int32_t>("call"), f.resources("awaited")};
  if (type == "woken") {
    Woken e{.time = f.time("t"), .thread = f.thread("thread")};
    if (f.has("by")) e.by = f.thread("by");
    if (f.has("through")) e.through = f.resource("through");
    e.unrelated = f.flag("unrelated");
    return e;
  }
  if (type == "holders")
    return Holders{f.time("t"), f.resource("resource"), f.word("evidence", evidence_words), f.threads("threads")};
  if (type == "quantum-used") {
    const auto path = f.threads("path");
    return QuantumUsed{f.time("t"), f.thread("requester"), {path.begin(), path.end()}};
  }
  if (type == "conversed")
    return Conversed{f.time("t"), f.thread("thread"), f.thread("by"), f.number<std::uint32_t>("waits")};
  if (type == "ranked") {
    Ranked e{f.time("t"), f.thread("thread"), std::nullopt};
    if (f.has("counts_as")) e.counts_as = f.attr("counts_as");
    return e;
  }
  if (type == "execed") return Execed{f.time("t"), f.thread("thread")};
  if (type == "exited") return Exited{f.time("t"), f.thread("thread")};
  return std::nullopt;
}

}  // namespace swapd::replay
