// The JSON texts of the contract (docs/design.md, Contracts): field names, units and order as tools outside rely on
// them.
//
// Shape: times in milliseconds as *_ms or seconds as *_s, enums as lower-case words with hyphens, resources as
// "kind:ints". Names of threads are bytes that any program can choose; what is not UTF-8 in them becomes U+FFFD, so
// that every text is valid JSON and a valid D-Bus string.
#pragma once

#include <string>
#include <vector>

#include "bus/backend.h"

namespace swapd::bus {

[[nodiscard]] std::string status_json(const StatusView& status);
// ps: all threads, with the resources they wait for.
[[nodiscard]] std::string threads_json(const std::vector<ThreadView>& threads);
// why: the same threads with the tree of providers under each awaited resource.
[[nodiscard]] std::string why_json(const std::vector<ThreadView>& threads);
[[nodiscard]] std::string graph_json(const GraphView& graph);
// class: what each allows, and what its members have moved.
[[nodiscard]] std::string limits_json(const std::vector<ClassView>& classes);
[[nodiscard]] std::string policy_json(const std::vector<SettingView>& settings);
// One line of `events`. The event's own fields never hide time, type, pid, tid and comm.
[[nodiscard]] std::string event_json(const EventView& event);

// The text with each byte that is not UTF-8 replaced: what a D-Bus string may hold.
[[nodiscard]] std::string valid_utf8(const std::string& text);

}  // namespace swapd::bus
