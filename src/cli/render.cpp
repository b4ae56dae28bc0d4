#include "cli/render.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/thread_state.h"
#include "cli/failure.h"
#include "cli/words.h"

namespace swapd::cli {
namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no room, nor does paint.
std::size_t width(const std::string& cell) {
  std::size_t out = 0;
  bool paint = false;
  for (const char c : cell) {
    if (c == '\033') paint = true;
    if (!paint && (static_cast<unsigned char>(c) & 0xC0) != 0x80) ++out;
    if (c == 'm') paint = false;
  }
  return out;
}

std::string joined(const Json& list) {
  std::string out;
  for (const Json& item : list)
    out += (out.empty() ? "" : ",") + (item.is_string() ? printable(item.get<std::string>()) : item.dump());
  return out.empty() ? "-" : out;
}

// "nice 0", or where the weight of its CPU group counts "nice 0 (as nice -10)".
std::string own_priority(const Json& t) {
  std::string out = priority(t.value("base", Json::object()));
  if (t.value("importance_from", "") == "weight")
    out += " (as " + priority(t.value("importance", Json::object())) + ")";
  return out;
}

std::string cpu_used(const Json& status) {
  const Json cpu = status.value("cpu", Json::object());
  const auto seconds = [&](const char* key) { return fmt::format("{:.2f} s", cpu.value(key, 0.0)); };
  return seconds("total_s") + " (engine " + seconds("engine_s") + ", worker " + seconds("worker_s") + ", receivers " +
         seconds("receivers_s") + ", jobs " + seconds("jobs_s") + ", memory " + seconds("memory_s") + ", control " +
         seconds("control_s") + "), guard " + seconds("guard_s");
}

// "mpi_rank, pid 812: coscheduled, 2 threads, waits in vain for 63 % of its CPU time without slots, has 1.00 of …"
std::string parallel_job(const Json& job) {
  std::string out = printable(job.value("comm", "")) + ", pid " + std::to_string(job.value("id", std::uint64_t{0})) +
                    ": " + printable(job.value("state", "")) + ", " +
                    std::to_string(job.value("members", Json::array()).size()) + " threads";
  if (const double waste = job.value("waste", 0.0); waste > 0)
    out += fmt::format(", waits in vain for {:.0f} % of its CPU time without slots", waste * 100);
  if (job.value("calls_granted", std::uint64_t{0}) > 0)
    out += fmt::format(", has {:.2f} of its fair share", job.value("fairness", 1.0));
  return out;
}

std::string budget(const Json& status) {
  const Json budget = status.value("budget", Json::object());
  const auto percent = [&](const char* key) { return fmt::format("{:.3g} %", budget.value(key, 0.0) * 100); };
  const double wait = budget.value("wait_ms", 0.0);
  return percent("used") + " of a CPU used, " + percent("share_now") + " allowed now (" + percent("share") +
         " while it helps)" + (wait > 0 ? ", each turn waits " + duration(wait) : "") + ", patience " +
         duration(budget.value("patience_ms", 0.0));
}

}  // namespace

std::string table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows,
                  const Paint& paint) {
  std::vector<std::size_t> widths(columns.size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < columns.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string room(widths[i] - width(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (columns[i].right ? room + row[i] : row[i] + room);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += paint(&row == &rows.front() ? Style::heading : Style::plain, line) + "\n";
  }
  return out;
}

std::string duration(double ms) {
  if (ms < 9.95) return fmt::format("{:.1f} ms", ms);
  if (ms < 999.5) return fmt::format("{:.0f} ms", ms);
  if (ms < 59'950) return fmt::format("{:.1f} s", ms / 1000);
  const auto seconds = std::llround(std::min(ms, 1e15) / 1000);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::string human_size(long long bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t at = 0;
  for (; (value >= 10'000 || value <= -10'000) && at + 1 < std::size(units); ++at) value /= 1024;
  return at == 0 ? fmt::format("{:.0f} {}", value, units[at]) : fmt::format("{:.1f} {}", value, units[at]);
}

// "away: make, pid 812, since 12 s, 400.0 MiB swapped out; it thaws by itself, or by `swapctl thaw 812`"
static void append_memory(std::vector<std::vector<std::string>>& rows, const Json& memory, const Paint& paint) {
  for (const Json& group : memory.value("groups", Json::array())) {
    if (!group.value("thrashes", false)) continue;
    const std::string name = printable(group.value("group", ""));
    std::string text = (name.empty() ? "the machine" : "group " + name) +
                       " thrashes: " + fmt::format("{:.0f} % of a CPU's time is lost", 100 * group.value("lost", 0.0));
    if (!group.value("stuck", "").empty()) text += "; to put programs away would free too little";
    rows.push_back({paint(Style::warning, "memory"), text});
  }
  for (const Json& one : memory.value("away", Json::array())) {
    const std::string pid = one.value("pid", Json(0)).dump();
    rows.push_back({"away", printable(one.value("comm", "")) + ", pid " + pid + ", " + one.value("state", "") +
                                " since " + fmt::format("{:.0f} s, ", one.value("since_s", 0.0)) +
                                human_size(one.value("swapped_out_bytes", 0LL)) +
                                " swapped out; back when there is room, or by `swapctl thaw " + pid + "`"});
  }
}

std::string render_status(const std::string& json, const Paint& paint) {
  const Json s = Json::parse(json);
  const auto number = [&](const char* key) { return s.value(key, Json(0)).dump(); };
  std::string observer = printable(s.value("observer", ""));
  if (const std::string why = printable(s.value("observer_reason", "")); !why.empty()) observer += " (" + why + ")";
  // Hundreds of threads may ask for more than the budget pays for.
  const std::string unheard =
      whole(s, "unheard_threads") > 0 ? " (" + number("unheard_threads") + " not heard of, for the budget's sake)" : "";
  std::vector<std::vector<std::string>> rows = {
      {"swapd", printable(s.value("version", "")) + ", pid " + number("pid")},
      {"observer", observer},
      {"managed", number("managed_threads") + " threads of " + number("managed_processes") + " processes, " +
                      number("listeners") + " listeners"},
      {"donations", number("donations_active") + " in force, " + number("donations_total") + " in all"},
      {"notifications", number("notifications_total") + ", " + number("events_lost") + " events lost"},
      {"model", number("resources") + " resources, " + number("requesters") + " requesters, " + number("providers") +
                    " providers"},
      {"watching", printable(s.value("watch_method", "")) + ": " + number("watched_threads") + " threads" + unheard +
                       ", " + number("watch_wakeups_total") + " wake-ups, " + number("watch_polls_total") + " polls"},
      {"CPU used", cpu_used(s)},
      {"budget", budget(s)},
  };
  if (whole(s, "match_rules") > 0)
    rows.push_back({"matching", number("match_rules") + " rules, " + number("programs_total") +
                                    " programs seen to start, " + number("matched_total") + " matched, " +
                                    number("managed_by_policy_total") + " managed"});
  for (const Json& job : s.value("jobs", Json::array())) rows.push_back({"parallel job", parallel_job(job)});
  append_memory(rows, s.value("memory", Json::object()), paint);
  if (s.value("paused", false))
    rows.push_back({paint(Style::warning, "paused"), "nothing is lent until `swapctl resume`"});
  if (whole(s, "over_quota_total") > 0)
    rows.push_back({paint(Style::warning, "quota"),
                    number("over_quota_total") + " times a user had as many threads or processes as it may"});
  if (whole(s, "log_drops") > 0) rows.push_back({"log", number("log_drops") + " lines dropped"});
  for (const Json& rival : s.value("rivals", Json::array()))
    rows.push_back({paint(Style::warning, "rival"), printable(rival.get<std::string>())});
  for (const Json& piece : s.value("missing", Json::array()))
    rows.push_back({paint(Style::warning, "missing"), missing_piece(piece)});
  for (const Json& warning : s.value("warnings", Json::array()))
    rows.push_back({paint(Style::warning, "warning"), printable(warning.get<std::string>())});
  return table({{}, {}}, rows);
}

std::string painted_state(const std::string& state, const Paint& paint) {
  const auto is = [&](ThreadState one) { return state == word(one); };
  const bool held = is(ThreadState::delayed) || is(ThreadState::stopped) || is(ThreadState::frozen);
  const Style style = is(ThreadState::virtual_runnable) ? Style::good : held ? Style::warning : Style::plain;
  return paint(style, printable(state));
}

// The threads that lend to it; of a coscheduled thread its job; of one above its base level that.
std::string lenders(const Json& t) {
  if (t.value("rank_from", "") == "level")
    return "level " + std::to_string(t.value("level", Json::object()).value("level", 0));
  if (t.value("rank_from", "") == "coscheduling")
    return "job " + std::to_string(t.value("job", Json::object()).value("id", std::uint64_t{0}));
  return joined(t.value("donated_by", Json::array()));
}

std::string render_ps(const std::string& json, const Paint& paint) {
  const Json answer = Json::parse(json);
  std::vector<std::vector<std::string>> rows = {
      {"PID", "TID", "COMM", "CLASS", "STATE", "FOR", "BASE", "EFFECTIVE", "LENT BY", "WAITS FOR"}};
  for (const Json& t : answer.at("threads")) {
    const std::string class_name = printable(t.value("class", ""));
    const bool lent = lenders(t) != "-";
    rows.push_back({t.value("pid", Json(0)).dump(), t.value("tid", Json(0)).dump(), printable(t.value("comm", "")),
                    class_name.empty() ? "-" : class_name, painted_state(t.value("state", ""), paint),
                    time_in_state(t).empty() ? "-" : time_in_state(t), own_priority(t),
                    paint(lent ? Style::good : Style::plain, priority(t.value("effective", Json::object()))),
                    lenders(t), joined(t.value("waiting_for", Json::array()))});
  }
  if (rows.size() == 1) return "No thread is managed: start one with `swapctl run`.\n";
  return table({{true}, {true}, {}, {}, {}, {true}, {}, {}, {}, {}}, rows, paint);
}

std::string render_policy(const std::string& json, const Paint& paint) {
  const Json answer = Json::parse(json);
  std::string out, table;
  for (const Json& s : answer.at("settings")) {
    if (const std::string name = printable(s.value("table", "")); name != table || out.empty()) {
      out += fmt::format("{}{}\n", out.empty() ? "" : "\n", paint(Style::heading, "[" + name + "]"));
      table = name;
    }
    if (s.value("key", "").empty()) continue;
    const std::string line = printable(s.value("key", "")) + " = " + printable(s.value("value", ""));
    out += fmt::format("{:<39} {}\n", line, paint(Style::faint, "# " + printable(s.value("where", ""))));
  }
  return out;
}

std::string render_event(const std::string& json, const Paint& paint) {
  const Json e = Json::parse(json);
  constexpr double year_10000 = 253402300800;
  const double told = e.value("time", 0.0);
  const double time = told >= 0 && told < year_10000 ? told : 0.0;  // a daemon's word, or a file's
  const auto second = static_cast<std::time_t>(std::floor(time));
  const std::string type = e.value("type", "");
  const Style style = type == "donation-begun" || type == "donation-ended" ? Style::good
                      : type == "ineffective" || type == "limit-reached"   ? Style::warning
                      : type == "inversion-found" || type == "events-lost" ? Style::heading
                                                                           : Style::plain;
  std::string line = paint(Style::faint, fmt::format("{:%H:%M:%S}.{:03.0f}", fmt::localtime(second),
                                                     std::floor((time - std::floor(time)) * 1000)));
  line += "  " + paint(style, fmt::format("{:<15}", printable(type)));
  if (const long long tid = whole(e, "tid"); tid != 0)
    line += fmt::format("  {}[{}]", printable(e.value("comm", "")), tid);
  for (const auto& [key, value] : e.items()) {
    if (key == "time" || key == "type" || key == "pid" || key == "tid" || key == "comm") continue;
    line += "  " + printable(key) + "=" + (value.is_string() ? printable(value.get<std::string>()) : value.dump());
  }
  return line;
}

}  // namespace swapd::cli
