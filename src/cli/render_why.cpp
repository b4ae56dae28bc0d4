#include <fmt/format.h>

#include <algorithm>

#include "base/thread_state.h"
#include "cli/failure.h"
#include "cli/render.h"
#include "cli/words.h"

namespace swapd::cli {
namespace {

std::string text_of(const Json& object, const char* key) { return printable(object.value(key, "")); }

// "postgres, pid 200" or, of another thread than the first, "postgres, pid 200, thread 203".
std::string who(const Json& thread) {
  const long long pid = whole(thread, "pid");
  const long long tid = whole(thread, "tid");
  std::string out = fmt::format("{}, pid {}", text_of(thread, "comm"), pid);
  if (tid != pid) out += fmt::format(", thread {}", tid);
  return out;
}

void append_waits(std::string& out, const Json& waits, std::size_t depth, const Paint& paint);

void append_provider(std::string& out, const Json& provider, std::size_t depth, const Paint& paint) {
  const std::string evidence = provider.value("evidence", "");
  const bool favoured = provider.value("favoured", false);
  out += std::string(depth * 2, ' ') + (favoured ? paint(Style::good, "=>") + " " : " - ") + who(provider) + ": ";
  if (favoured) out += paint(Style::good, "favoured") + ", ";
  if (evidence != "unenrolled" && evidence != "relay")
    out += fmt::format("confidence {:g}, ", provider.value("confidence", 0.0));
  const std::string state = provider.value("state", "");
  if (state == word(ThreadState::stopped) || state == word(ThreadState::frozen))
    out += paint(Style::warning, state) + ", ";
  out += evidence_phrase(evidence) + "\n";
  append_waits(out, provider.value("waiting_for", Json::array()), depth + 2, paint);
}

void append_waits(std::string& out, const Json& waits, std::size_t depth, const Paint& paint) {
  for (const Json& wait : waits) {
    const std::string call = text_of(wait, "call");
    const Json providers = wait.value("providers", Json::array());
    out += std::string(depth * 2, ' ') + "waits" + (call.empty() ? "" : " in " + call) + " for " +
           text_of(wait, "resource") + (providers.empty() ? ", and nobody is known who could provide it" : "") + "\n";
    for (const Json& provider : providers) append_provider(out, provider, depth + 1, paint);
  }
}

void append_donation(std::string& out, const Json& thread, const Paint& paint) {
  const Json donation = thread.value("donation", Json::object());
  const bool effective = donation.value("effective", false);
  const std::string reason = donation.value("reason", "none");
  const std::string limited = donation.value("limited", "none");
  const Json lenders = thread.value("donated_by", Json::array());
  if (!lenders.empty()) {
    std::string names;
    for (const Json& tid : lenders) names += (names.empty() ? "" : ", ") + tid.dump();
    out += fmt::format("  lent to it: it runs at {} on behalf of thread {}\n",
                       priority(thread.value("effective", Json::object())), names);
  }
  out += "  donation: ";
  if (effective)
    out += paint(Style::good, "in force") + (limited == "none" ? "" : ", as a nice value: " + reason_phrase(limited)) +
           "\n";
  else if (!reason.empty() && reason != "none")
    out += paint(Style::warning, "ineffective") + ": " + reason_phrase(reason) + "\n";
  else
    out += donation.value("active", false) ? "begun\n" : "none\n";
}

// "63 %"
std::string percent(const Json& object, const char* key) {
  return fmt::format("{:.0f} %", object.value(key, 0.0) * 100);
}

// Tells what a thread of a parallel job does with its CPU, and for which threads.
void append_job(std::string& out, const Json& thread, const Paint& paint) {
  const Json job = thread.value("job", Json());
  if (!job.is_object()) return;
  const bool coscheduled = thread.value("rank_from", "") == "coscheduling";
  const Json tids = job.value("mates", Json::array());
  const Json cpu = job.value("mates_cpu", Json::array());
  std::string mates;
  for (std::size_t i = 0; i < tids.size(); ++i) {
    mates += (mates.empty() ? "" : ", ") + tids[i].dump();
    if (i < cpu.size() && cpu[i].is_number())
      mates += fmt::format(" ({:.0f} % of a CPU lately)", cpu[i].get<double>() * 100);
  }
  if (job.value("threads", std::size_t{0}) > tids.size() + 1) mates += " …";
  out += "  parallel job " + text_of(job, "comm") + ", pid " + std::to_string(job.value("id", std::uint64_t{0})) +
         ": " +
         (coscheduled ? paint(Style::good, "coscheduled") + ", it has its CPU in slots, together with its mates"
                      : text_of(job, "state")) +
         "\n";
  if (job.value("waiting", 0.0) > 0 && !mates.empty())
    out += "    spins " + percent(job, "waiting") + " of its CPU time for " +
           (tids.size() == 1 ? "thread " : "one of the threads ") + mates + "\n";
  out += "    has had " + percent(job, "cpu") + " of a CPU lately; " + percent(job, "share") +
         " of its CPU is its fair share\n";
}

// "level 11, 6 above its base: awaited terminal input 12 ms ago"
void append_level(std::string& out, const Json& thread, const Paint& paint) {
  const Json level = thread.value("level", Json());
  if (!level.is_object()) return;
  const int now = level.value("level", 0), above = now - level.value("base", 0);
  out += "  level " + std::to_string(now);
  if (above > 0) out += ", " + paint(Style::good, std::to_string(above) + " above its base");
  if (std::string awaited = text_of(level, "awaited"); !awaited.empty()) {
    std::ranges::replace(awaited, '-', ' ');
    out += fmt::format(": awaited {} {:.0f} ms ago", awaited, level.value("since_ms", 0.0));
  }
  out += "\n";
}

// "away since 12 s for want of memory, 98.0 MiB swapped out; back when there is room, or by `swapctl thaw 812`"
void append_away(std::string& out, const Json& thread, const Paint& paint) {
  const Json away = thread.value("away", Json());
  if (!away.is_object()) return;
  out += "  " + paint(Style::warning, "away") + fmt::format(" since {:.0f} s", away.value("since_s", 0.0)) +
         " for want of memory, " + human_size(away.value("swapped_out_bytes", 0LL)) +
         " swapped out; back when there is room, or by `swapctl thaw " + away.value("pid", Json(0)).dump() + "`\n";
}

}  // namespace

std::string render_why(const std::string& json, const Paint& paint) {
  std::string out;
  const Json parsed = Json::parse(json);  // outlives the loop
  for (const Json& t : parsed.at("threads")) {
    if (!out.empty()) out += "\n";
    out += paint(Style::heading, who(t));
    if (t.contains("base")) out += ", " + priority(t.at("base"));
    if (t.value("importance_from", "") == "weight")
      out += fmt::format(", counts as {} because its CPU group weighs {}",
                         priority(t.value("importance", Json::object())), whole(t, "group_weight"));
    out += ", " + state_phrase(t.value("state", ""), time_in_state(t));
    if (const long long debt = t.value("debt_bytes", 0LL); debt > 0)
      out += ": pays for " + human_size(debt) + " that it has moved before";
    else if (const long long share = t.value("share_bytes", 0LL); share > 0)
      out += ": one call waits for its share of " + human_size(share) + " before it moves them";
    out += "\n";
    const Json waits = t.value("waiting_for", Json::array());
    append_waits(out, waits, 1, paint);
    const bool polls = t.value("polls", false);
    if (polls) out += "  polls: it sleeps for short again and again, and tries something in between\n";
    if (const std::string call = text_of(t, "call"); waits.empty() && !call.empty())
      out += "  in " + call +
             (polls ? ", and no lock is known that another process holds on a file that it has open\n"
                    : ", which waits for no other thread that swapd knows of\n");
    append_job(out, t, paint);
    append_level(out, t, paint);
    append_away(out, t, paint);
    append_donation(out, t, paint);
  }
  return out.empty() ? "None of its threads is blocked.\n" : out;
}

}  // namespace swapd::cli
