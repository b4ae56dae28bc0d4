#include "state/state_file.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace swapd::daemon {

using nlohmann::json;

Status write_state(const std::string& path, const json& content) {
  return replace_file(path, content.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

Status replace_file(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  {
    std::ofstream out(draft, std::ios::trunc);
    out << text;
    if (!out.flush()) return errno_error(draft);
  }
  std::error_code failed;
  std::filesystem::rename(draft, path, failed);
  if (failed) return Error(failed.value(), path);
  return Done{};
}

Status read_state(const std::string& path, int version, const std::string& boot_id,
                  const std::function<void(replay::Fields&, replay::Mistake&)>& take) {
  std::ifstream in(path);
  if (!in) return Done{};
  const json file = json::parse(in, nullptr, false);
  const auto bad = [&](const std::string& why) { return Error(EBADMSG, path + ": " + why); };
  if (!file.is_object()) return bad("not an object");
  replay::Mistake mistake;
  replay::Fields fields(file, mistake);
  if (fields.number<int>("version") != version) return bad("of another version");
  const bool of_this_boot = fields.text("boot_id") == boot_id;
  if (of_this_boot) take(fields, mistake);
  return mistake ? Status(bad(mistake.text())) : Done{};
}

void set_aside(const std::string& path) {
  std::error_code ignored;
  std::filesystem::rename(path, path + ".damaged", ignored);
}

}  // namespace swapd::daemon
