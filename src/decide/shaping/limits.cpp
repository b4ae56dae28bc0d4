#include "decide/shaping/limits.h"

#include <algorithm>

namespace swapd::decide {

Turns turns_of(const TokenBucket::Rules& rules) {
  return {.share = std::max(rules.rate / 100, Tokens{1}),
          .ahead = std::max(rules.rate / 10, min_burst),
          .others = std::max(rules.rate / 2, min_burst)};
}

bool ClassLimits::limits() const {
  return disks.limits() || networks.limits() ||
         std::ranges::any_of(devices, [](const auto& entry) { return entry.second.limits(); });
}

bool ClassLimits::limits_networks() const {
  return networks.limits() || std::ranges::any_of(devices, [](const auto& entry) {
           return entry.first.kind == Device::Kind::network && entry.second.limits();
         });
}

bool ClassLimits::counts_operations() const {
  return disks.counts_operations() || std::ranges::any_of(devices, [](const auto& entry) {
           return entry.first.kind == Device::Kind::disk && entry.second.counts_operations();
         });
}

const DeviceLimits& ClassLimits::of(const Device& device) const {
  const auto own = devices.find(device);
  if (own != devices.end()) return own->second;
  return device.kind == Device::Kind::disk ? disks : networks;
}

ClassLimits ClassLimits::with_disks_below(Tokens bytes) const {
  ClassLimits out = *this;
  const auto lower = [&](DeviceLimits& of) {
    if (of.both.bytes && *of.both.bytes <= bytes) return;
    of.both.bytes = bytes;
    of.both.burst.reset();
  };
  lower(out.disks);
  for (auto& [device, of] : out.devices)
    if (device.kind == Device::Kind::disk) lower(of);
  return out;
}

}  // namespace swapd::decide
