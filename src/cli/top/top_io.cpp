#include "cli/top/top_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/failure.h"
#include "cli/render.h"
#include "cli/top/top.h"
#include "cli/words.h"

namespace swapd::cli {
namespace {

std::optional<long long> number(const Json& from, const char* key) {
  return from.contains(key) && from.at(key).is_number() ? std::optional(whole(from, key)) : std::nullopt;
}

}  // namespace

std::vector<TopDevice> top_devices(const std::string& classes) {
  std::vector<TopDevice> out;
  const Json all = Json::parse(classes);
  for (const Json& c : all.at("classes")) {
    const Json devices = c.value("devices", Json::array());
    for (const Json& d : devices)
      out.push_back({.class_name = printable(c.value("name", "")),
                     .device = printable(d.value("device", "")),
                     .mode = printable(c.value("mode", "")),
                     .limit = number(d, "limit"),
                     .tokens = number(d, "tokens"),
                     .automatic = c.contains("auto") && c.at("auto").is_object(),
                     .bytes = whole(d, "read_bytes") + whole(d, "written_bytes") + whole(d, "mapped_bytes"),
                     .cached = whole(d, "cached_bytes"),
                     .calls = whole(d, "calls"),
                     .delayed = whole(d, "delayed_calls"),
                     .delayed_s = d.value("delayed_s", 0.0)});
  }
  return out;
}

std::string top_io_text(const std::vector<TopDevice>& now, const std::vector<TopDevice>* before, double elapsed_s,
                        std::size_t width) {
  if (now.empty()) return "No class with limits has moved anything: see `swapctl class create`.\n";
  const bool rates = before != nullptr && elapsed_s > 0;
  std::vector<std::vector<std::string>> rows = {{"CLASS", "DEVICE", "MODE", "LIMIT/s", rates ? "ACHIEVED/s" : "MOVED",
                                                 "CACHED", rates ? "CALLS/s" : "CALLS", rates ? "DELAYED/s" : "DELAYED",
                                                 "EACH FOR", "TOKENS"}};
  for (const TopDevice& d : now) {
    TopDevice since = d;
    if (rates) {
      const auto old = std::ranges::find_if(
          *before, [&](const TopDevice& b) { return b.class_name == d.class_name && b.device == d.device; });
      // A class that is made anew begins again at 0.
      if (old != before->end() && old->calls <= d.calls) {
        since.bytes -= old->bytes;
        since.cached -= old->cached;
        since.calls -= old->calls;
        since.delayed -= old->delayed;
        since.delayed_s -= old->delayed_s;
      }
    }
    const double per = rates ? 1 / elapsed_s : 1;
    const auto each = [&](long long value) { return fmt::format("{:.0f}", static_cast<double>(value) * per); };
    const auto bytes = static_cast<double>(since.bytes);
    rows.push_back(
        {d.class_name, d.device, d.mode, d.limit ? human_size(*d.limit) + (d.automatic ? " auto" : "") : "-",
         human_size(static_cast<long long>(bytes * per)),
         since.bytes > 0
             ? fmt::format("{:.0f} %", std::clamp(100.0 * static_cast<double>(since.cached) / bytes, 0.0, 100.0))
             : "-",
         each(since.calls), each(since.delayed),
         since.delayed > 0 ? duration(since.delayed_s * 1000 / static_cast<double>(since.delayed)) : "-",
         d.tokens ? human_size(*d.tokens) : "-"});
  }
  const std::string all = table({{}, {}, {}, {true}, {true}, {true}, {true}, {true}, {true}, {true}}, rows);
  if (width == 0) return all;
  std::string out;
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) out += cut(line, width) + "\n";
  return out;
}

}  // namespace swapd::cli
