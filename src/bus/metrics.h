// Status as Prometheus text (the exposition format, version 0.0.4), for the node exporter's textfile collector.
//
// Names and units are that ecosystem's: counters end in _total, times are seconds, what is a state is 0 or 1.
#pragma once

#include <string>
#include <vector>

#include "bus/backend.h"

namespace swapd::bus {

[[nodiscard]] std::string metrics_text(const StatusView& status, const std::vector<ClassView>& classes);

}  // namespace swapd::bus
