#include "enroll/oci_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "enroll/json_text.h"

namespace swapd::daemon {
namespace {

using nlohmann::json;

constexpr std::string_view listener_name = "seccompFd";

Error malformed(const std::string& what) { return {EPROTO, "a container's state (OCI) " + what}; }

void read_metadata(const std::string& metadata, OciContainer& out) {
  std::istringstream words(metadata);
  for (std::string word; words >> word;) {
    if (word == oci_limits_word) out.limits = true;
    if (word == oci_observe_word) out.observe = true;
    if (word.starts_with(oci_class_word)) out.class_name = word.substr(oci_class_word.size());
  }
}

}  // namespace

Result<std::optional<OciContainer>> read_oci_state(std::string_view text) {
  const json whole = json::parse(text, nullptr, false);
  if (whole.is_discarded()) return std::optional<OciContainer>();
  if (!whole.is_object()) return malformed("is no object");
  OciContainer out;
  const auto pid = whole.find("pid");
  if (pid == whole.end() || !pid->is_number_integer() || pid->get<std::int64_t>() <= 0 ||
      pid->get<std::int64_t>() > INT32_MAX)
    return malformed("has no pid");
  out.pid = pid->get<pid_t>();
  if (const auto names = whole.find("fds"); names != whole.end() && names->is_array()) {
    const auto found = std::ranges::find(*names, json(listener_name));
    if (found == names->end()) return malformed("names no " + std::string(listener_name));
    out.listener_at = static_cast<std::size_t>(found - names->begin());
  }
  read_metadata(text_of(whole, "metadata"), out);
  const auto state = whole.find("state");
  if (state == whole.end() || !state->is_object()) return std::optional(out);
  out.id = text_of(*state, "id");
  const auto annotations = state->find("annotations");
  if (annotations != state->end() && annotations->is_object())
    if (std::string named = text_of(*annotations, oci_class_annotation); !named.empty()) out.class_name = named;
  return std::optional(out);
}

}  // namespace swapd::daemon
