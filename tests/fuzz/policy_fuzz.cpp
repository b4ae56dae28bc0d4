// Any bytes are a policy or one printable line that says why not; a policy that was accepted overlays cleanly onto
// itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/match.h"
#include "policy/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view half = text.substr(0, size / 2);
  if (swapd::policy::container_of(text).size() > size || swapd::policy::units_of(text).size() > size) std::abort();
  if (!swapd::policy::fits("*", text)) std::abort();
  static_cast<void>(swapd::policy::fits(half, text.substr(half.size())));
  const auto parsed = swapd::policy::parse(text, "fuzz.toml");
  if (!parsed) {
    const std::string& line = parsed.error().context();
    if (!line.starts_with("fuzz.toml:") || line.find('\n') != std::string::npos || line.size() > 1000) std::abort();
    return 0;
  }
  if (!parsed->classes.contains("default")) std::abort();
  for (const auto& [name, rules] : parsed->classes) {
    const swapd::policy::DonationPolicy donation = donation_of(*parsed, name);
    if (donation.strict && !donation.realtime) std::abort();
  }
  const auto again = swapd::policy::parse(text, "fuzz.toml", *parsed);
  if (!again || !(*again == *parsed)) std::abort();
  return 0;
}
