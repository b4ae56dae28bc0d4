// Serial programs beside a parallel job, as in the thesis's mixed workload [DCS97 §5.2.3]: tar|gzip and ghostscript,
// each again and again on a CPU of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "harness/process.h"

namespace swapd::bench {

// Those that are there: "tar", "ghostscript".
[[nodiscard]] std::vector<std::string> serial_programs();

class SerialLoad {
 public:
  SerialLoad(SerialLoad&&) = default;
  SerialLoad& operator=(SerialLoad&&) = delete;
  SerialLoad(const SerialLoad&) = delete;
  SerialLoad& operator=(const SerialLoad&) = delete;
  ~SerialLoad();
  // `per_cpu` programs on each CPU, one of `kinds` after the other.
  [[nodiscard]] static Result<SerialLoad> start(const std::vector<std::string>& kinds, int per_cpu,
                                                const std::vector<int>& cpus, bool split, std::chrono::seconds at_most);
  [[nodiscard]] double cpu_s() const;  // by now
  [[nodiscard]] double runs() const;   // how often a program has come to its end, all of them together

 private:
  explicit SerialLoad(TempDir dir) : dir_(std::move(dir)) {}
  [[nodiscard]] Status prepare() const;
  TempDir dir_;
  std::vector<Child> loops_;
};

}  // namespace swapd::bench
