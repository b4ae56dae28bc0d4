#include "cli/top/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <tuple>

#include "base/thread_state.h"
#include "cli/failure.h"
#include "cli/render.h"
#include "cli/words.h"

namespace swapd::cli {
namespace {

constexpr std::size_t name_width = 26;

// As base/sched_attr.h ranks them.
int rank_of(const Json& attributes) {
  const std::string policy = attributes.value("policy", "");
  if (policy == "deadline") return 200;
  if (policy == "fifo" || policy == "rr") return 100 + static_cast<int>(whole(attributes, "rt_priority"));
  return policy == "idle" ? 0 : 20 - static_cast<int>(whole(attributes, "nice"));
}

// "thread:4711" → 4711.
long long tid_of(const std::string& node) {
  const std::size_t at = node.rfind(':');
  const std::string digits = at == std::string::npos ? "" : node.substr(at + 1);
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return 0;
  return std::stoll(digits);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool waits(const TopThread& thread) { return thread.state == word(ThreadState::virtual_runnable); }

// The group of the order `wait`; the first comes first.
int group(const TopThread& thread) {
  if (waits(thread)) return 0;
  if (!thread.lent_by.empty() || thread.job != 0) return 1;
  if (thread.state == word(ThreadState::queued)) return 2;
  if (thread.state == word(ThreadState::running)) return 3;
  return thread.state == word(ThreadState::blocked) ? 5 : 4;
}

bool before(const TopThread& a, const TopThread& b, TopOrder order) {
  const auto by_pid = [](const TopThread& t) { return std::tuple(t.pid, t.tid); };
  switch (order) {
    case TopOrder::wait:
      if (group(a) != group(b)) return group(a) < group(b);
      if (a.since_ms != b.since_ms) return group(a) == 5 ? a.since_ms < b.since_ms : a.since_ms > b.since_ms;
      break;
    case TopOrder::priority:
      if (a.own_rank != b.own_rank) return a.own_rank > b.own_rank;
      break;
    case TopOrder::name:
      if (a.comm != b.comm) return a.comm < b.comm;
      break;
    case TopOrder::class_name:
      if (a.class_name != b.class_name) return a.class_name < b.class_name;
      break;
    case TopOrder::pid:
      break;
  }
  return by_pid(a) < by_pid(b);
}

bool fits(const TopThread& thread, const std::string& filter) {
  return filter.empty() || lower(thread.comm).find(filter) != std::string::npos ||
         lower(thread.class_name).find(filter) != std::string::npos;
}

// Waiters with whom they wait for below them; each thread once.
class Tree {
 public:
  Tree(const TopSample& sample, const std::vector<const TopThread*>& ordered) : sample_(sample), ordered_(ordered) {
    for (const TopThread* thread : ordered_) by_tid_[thread->tid] = thread;
  }
  std::vector<TopRow> rows() {
    std::set<long long> provide;
    for (const TopThread* thread : ordered_)
      for (const long long tid : providers(*thread)) provide.insert(tid);
    for (const TopThread* thread : ordered_)
      if (!provide.contains(thread->tid)) add(*thread, "", "");
    for (const TopThread* thread : ordered_) add(*thread, "", "");  // circles have no beginning
    return std::move(rows_);
  }

 private:
  std::vector<long long> providers(const TopThread& of) const {
    const auto found = sample_.providers.find(of.tid);
    return found == sample_.providers.end() ? std::vector<long long>{} : found->second;
  }
  void add(const TopThread& thread, const std::string& branch, const std::string& below) {
    if (!shown_.insert(thread.tid).second) return;
    rows_.push_back({thread, branch});
    std::vector<const TopThread*> next;
    const std::vector<long long> tids = providers(thread);
    for (const TopThread* one : ordered_)
      if (std::ranges::find(tids, one->tid) != tids.end() && !shown_.contains(one->tid)) next.push_back(one);
    for (const TopThread* one : next) {
      const bool last = one == next.back();
      add(*one, below + (last ? "└─ " : "├─ "), below + (last ? "   " : "│  "));
    }
  }
  const TopSample& sample_;
  const std::vector<const TopThread*>& ordered_;
  std::map<long long, const TopThread*> by_tid_;
  std::set<long long> shown_;
  std::vector<TopRow> rows_;
};

std::string padded(std::string_view text, std::size_t width) {
  std::string out = cut(text, width);
  std::size_t characters = 0;
  for (const char c : out) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return out + std::string(width - std::min(characters, width), ' ');
}

std::string line(const std::array<std::string, 10>& cells) {
  return fmt::format("{:>7} {:>7} {} {} {} {:>9} {} {} {}  {}", cells[0], cells[1], padded(cells[2], name_width),
                     padded(cells[3], 12), padded(cells[4], 16), cells[5], padded(cells[6], 8), padded(cells[7], 8),
                     padded(cells[8], 10), cells[9]);
}

std::string budget_of(const TopSample& sample) {
  if (sample.budget <= 0) return "";
  return fmt::format(" of {:.3g} % (patience {})", sample.budget * 100, duration(sample.patience_ms));
}

}  // namespace

std::string cut(std::string_view text, std::size_t width) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (characters++ == width) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

TopSample top_sample(const std::string& status, const std::string& threads, const std::string& graph) {
  TopSample sample;
  const Json s = Json::parse(status);
  sample.version = printable(s.value("version", ""));
  sample.observer = printable(s.value("observer", ""));
  sample.processes = whole(s, "managed_processes");
  sample.threads = whole(s, "managed_threads");
  sample.donations = whole(s, "donations_active");
  sample.donations_total = whole(s, "donations_total");
  sample.notifications_total = whole(s, "notifications_total");
  sample.cpu_s = s.value("cpu", Json::object()).value("total_s", 0.0);
  const Json budget = s.value("budget", Json::object());
  sample.budget = budget.value("share_now", 0.0);
  sample.patience_ms = budget.value("patience_ms", 0.0);
  for (const Json& piece : s.value("missing", Json::array()))
    sample.warnings.push_back("missing: " + missing_piece(piece));
  for (const Json& warning : s.value("warnings", Json::array()))
    sample.warnings.push_back(printable(warning.get<std::string>()));
  const Json of_threads = Json::parse(threads);
  for (const Json& t : of_threads.at("threads")) {
    const Json own = t.value("base", Json::object());
    TopThread row{.pid = whole(t, "pid"),
                  .tid = whole(t, "tid"),
                  .comm = printable(t.value("comm", "")),
                  .class_name = printable(t.value("class", "")),
                  .state = printable(t.value("state", "")),
                  .own = priority(own),
                  .now = priority(t.value("effective", Json::object())),
                  .since_ms = t.value("since_ms", 0.0),
                  .since_known = t.value("since_known", true),
                  .own_rank = rank_of(own)};
    if (const std::string policy = own.value("policy", ""); policy == "other")
      row.own_nice = static_cast<int>(whole(own, "nice"));
    for (const Json& one : t.value("waiting_for", Json::array()))
      row.waits_for.push_back(printable(one.get<std::string>()));
    for (const Json& one : t.value("donated_by", Json::array())) row.lent_by.push_back(one.get<long long>());
    if (t.value("rank_from", "") == "coscheduling") row.job = whole(t.value("job", Json::object()), "id");
    sample.rows.push_back(std::move(row));
  }
  const Json edges = Json::parse(graph).at("edges");
  std::map<std::string, std::vector<long long>> provided;
  for (const Json& e : edges)
    if (e.value("type", "") == "provides") provided[e.value("to", "")].push_back(tid_of(e.value("from", "")));
  for (const Json& e : edges)
    if (e.value("type", "") == "requests") {
      const long long waiter = tid_of(e.value("from", ""));
      for (const long long provider : provided[e.value("to", "")])
        if (provider != waiter) sample.providers[waiter].push_back(provider);
    }
  return sample;
}

std::vector<TopRow> top_rows(const TopSample& sample, const TopView& view) {
  std::vector<const TopThread*> ordered;
  const std::string filter = lower(view.filter);
  for (const TopThread& thread : sample.rows)
    if (fits(thread, filter)) ordered.push_back(&thread);
  std::ranges::stable_sort(ordered, [&](const TopThread* a, const TopThread* b) {
    return view.reversed ? before(*b, *a, view.order) : before(*a, *b, view.order);
  });
  if (view.processes) {
    std::set<long long> seen;
    std::erase_if(ordered, [&](const TopThread* thread) { return !seen.insert(thread->pid).second; });
  }
  if (view.tree) return Tree(sample, ordered).rows();
  std::vector<TopRow> rows;
  rows.reserve(ordered.size());
  for (const TopThread* thread : ordered) rows.push_back({*thread, ""});
  return rows;
}

std::vector<std::string> top_summary(const TopSample& sample, const TopSample* before, double elapsed_s) {
  std::map<std::string_view, std::size_t> states;
  for (const TopThread& thread : sample.rows) ++states[thread.state];
  std::string counts;
  for (const auto& [state, word] : thread_states)
    if (states[word] > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", states[word], word);
  std::string rates;
  if (before != nullptr && elapsed_s > 0)
    rates = fmt::format("; {:.0f} donations and {:.0f} notifications a second; swapd uses {:.1f} % of a CPU{}",
                        static_cast<double>(sample.donations_total - before->donations_total) / elapsed_s,
                        static_cast<double>(sample.notifications_total - before->notifications_total) / elapsed_s,
                        (sample.cpu_s - before->cpu_s) / elapsed_s * 100, budget_of(sample));
  return {fmt::format("swapd {}, observer {}: {} threads of {} processes{}{}", sample.version, sample.observer,
                      sample.threads, sample.processes, counts.empty() ? "" : ": ", counts),
          fmt::format("{} donations in force, {} in all{}", sample.donations, sample.donations_total, rates)};
}

std::string top_heading(const TopView& view, std::size_t width) {
  const auto marked = [&](const char* text, TopOrder order) {
    return std::string(text) + (view.order != order ? "" : view.reversed ? "^" : "v");
  };
  const std::string heading = line({marked("PID", TopOrder::pid), "TID", marked("COMMAND", TopOrder::name),
                                    marked("CLASS", TopOrder::class_name), "STATE", marked("FOR", TopOrder::wait),
                                    marked("OWN", TopOrder::priority), "NOW", "LENT BY", "WAITS FOR"});
  return width == 0 ? heading : cut(heading, width);
}

std::string top_line(const TopRow& row, std::size_t width) {
  const TopThread& t = row.thread;
  std::string lent, waits_for;
  for (const long long tid : t.lent_by) lent += (lent.empty() ? "" : ",") + std::to_string(tid);
  if (t.job != 0) lent = "job " + std::to_string(t.job);
  for (const std::string& resource : t.waits_for) waits_for += (waits_for.empty() ? "" : ", ") + resource;
  std::string text = line({std::to_string(t.pid), std::to_string(t.tid), row.branch + t.comm, t.class_name, t.state,
                           t.since_known ? duration(t.since_ms) : "-", t.own, t.now, lent, waits_for});
  text.erase(text.find_last_not_of(' ') + 1);
  return width == 0 ? text : cut(text, width);
}

int top_search(const std::vector<TopRow>& rows, std::string_view text, int from) {
  const std::string wanted = lower(text);
  const int count = static_cast<int>(rows.size());
  for (int step = 0; step < count; ++step) {
    const int at = (from + step) % count;
    const TopThread& thread = rows[static_cast<std::size_t>(at)].thread;
    if (lower(thread.comm).find(wanted) != std::string::npos || std::to_string(thread.tid) == wanted ||
        std::to_string(thread.pid) == wanted)
      return at;
  }
  return -1;
}

}  // namespace swapd::cli
