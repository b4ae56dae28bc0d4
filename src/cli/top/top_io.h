// I/O rows of `swapctl top`: one for each device of each class, as the monitor of the paper has it [TAP08 §3]. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace swapd::cli {

struct TopDevice {
  std::string class_name, device, mode;
  std::optional<long long> limit, tokens;  // bytes a second; bytes, below 0 owed
  bool automatic = false;                  // swapd finds the limit
  long long bytes = 0, cached = 0, calls = 0, delayed = 0;
  double delayed_s = 0;
};
// Reads the text that Classes gives. Throws Json::exception where that is none of ours.
[[nodiscard]] std::vector<TopDevice> top_devices(const std::string& classes);

// before: the look before this one, `elapsed_s` ago: rates are since then; null: since the class began, as sums.
// Each line is `width` characters at most; 0: as long as it takes.
[[nodiscard]] std::string top_io_text(const std::vector<TopDevice>& now, const std::vector<TopDevice>* before,
                                      double elapsed_s, std::size_t width);

}  // namespace swapd::cli
