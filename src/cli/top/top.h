// Rows of `swapctl top`: swapd's answers, in an order, cut to a width. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swapd::cli {

struct TopThread {
  long long pid = 0, tid = 0;
  std::string comm, class_name, state, own, now;  // own and now: priorities, "nice 0", "fifo 49"
  double since_ms = 0;
  bool since_known = true;
  int own_rank = 0;             // of its own priority: the higher, the more important
  std::optional<int> own_nice;  // none: it is real-time
  std::vector<std::string> waits_for;
  std::vector<long long> lent_by;
  long long job = 0;  // that it has its CPU in slots with
};

// One look at swapd.
struct TopSample {
  std::string version, observer;
  long long processes = 0, threads = 0, donations = 0, donations_total = 0, notifications_total = 0;
  double cpu_s = 0;                    // of swapd's own threads
  double budget = 0, patience_ms = 0;  // share of one CPU that they may use; 0: not known
  std::vector<std::string> warnings;
  std::vector<TopThread> rows;
  std::map<long long, std::vector<long long>> providers;  // of what a thread waits for; both by tid
};
// Reads the texts that Status, Processes and Graph give. Throws Json::exception where they are none of ours.
[[nodiscard]] TopSample top_sample(const std::string& status, const std::string& threads, const std::string& graph);

enum class TopOrder : std::uint8_t { wait, priority, pid, name, class_name };
inline constexpr std::array top_order_words = {"wait", "priority", "pid", "name", "class"};

struct TopView {
  TopOrder order = TopOrder::wait;
  bool reversed = false;
  bool tree = false;       // under each requester its providers
  bool processes = false;  // a row a process: its thread that stands first
  bool io = false;         // what classes move, instead of threads
  std::string filter;      // only rows with this in name or class; whatever its case
};

struct TopRow {
  TopThread thread;
  std::string branch;  // what stands before its name in a tree
};
// The order `wait`: threads that wait for one that could run, the longest wait first; boosted ones; those without a
// CPU; running ones; and those that wait for no thread, the latest first. A tree has each thread once, under the first
// that waits for it.
[[nodiscard]] std::vector<TopRow> top_rows(const TopSample& sample, const TopView& view);

// The lines above the table. before: the look before this one, `elapsed_s` ago; for rates.
[[nodiscard]] std::vector<std::string> top_summary(const TopSample& sample, const TopSample* before, double elapsed_s);
// Each line is `width` characters at most (0: as long as it takes) and has nothing that steers a terminal.
[[nodiscard]] std::string top_heading(const TopView& view, std::size_t width);
[[nodiscard]] std::string top_line(const TopRow& row, std::size_t width);
// As many characters, bytes of UTF-8 that belong together counted as one.
[[nodiscard]] std::string cut(std::string_view text, std::size_t width);

// The place of the next row, from `from` on and around, that has the text in its name or id; none: -1.
[[nodiscard]] int top_search(const std::vector<TopRow>& rows, std::string_view text, int from);

}  // namespace swapd::cli
