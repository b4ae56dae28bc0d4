#include "state_file.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace swapd::daemon {

using nlohmann::json;

Status write_state(const std::string& path, const json& content) {
  const std::string draft = path + ".new";
  {
    std::ofstream out(draft, std::ios::trunc);
    out << content << '\n';
    if (!out.flush()) return errno_error(draft);
  }
  std::error_code failed;
  std::filesystem::rename(draft, path, failed);
  if (failed) return Error(failed.value(), path);
  return Done{};
}

Status read_state(const std::string& path, int version, const std::string& boot_id,
                  const std::function<Status(const json&)>& take) {
  std::ifstream in(path);
  if (!in) return Done{};
  const json file = json::parse(in, nullptr, false);
  const auto bad = [&](const std::string& why) { return Error(EBADMSG, path + ": " + why); };
  if (!file.is_object()) return bad("not an object");
  try {
    if (file.at("version").get<int>() != version) return bad("of another version");
    if (file.at("boot_id").get<std::string>() != boot_id) return Done{};
    const Status taken = take(file);
    return taken ? Status(Done{}) : bad(taken.error().context());
  } catch (const json::exception&) {
    return bad("a field is missing, or of another type");
  }
}

void set_aside(const std::string& path) {
  std::error_code ignored;
  std::filesystem::rename(path, path + ".damaged", ignored);
}

}  // namespace swapd::daemon
