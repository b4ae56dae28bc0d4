#include "harness/provenance.h"

#include <sys/utsname.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include "commit.h"

namespace swapd::bench {

std::string command_of(std::span<const char* const> arguments) {
  std::string command = "swapbench";
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--plot") {
      ++i;
    } else if (!argument.starts_with("--plot=")) {
      command += ' ';
      command += argument;
    }
  }
  return command;
}

std::string cpu_of(std::string_view cpuinfo) {
  std::string model;
  int cpus = 0;
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos || !line.starts_with("model name")) continue;
    model = line.substr(colon + 2);
    ++cpus;
  }
  if (model.empty()) return "unknown";
  return model + ", " + std::to_string(cpus) + (cpus == 1 ? " CPU" : " CPUs");
}

nlohmann::json provenance(std::span<const char* const> arguments) {
  struct utsname name {};
  (void)uname(&name);
  const std::ifstream in("/proc/cpuinfo");
  std::ostringstream cpuinfo;
  cpuinfo << in.rdbuf();
  const std::time_t now = std::time(nullptr);
  struct tm utc {};
  char date[32] = "";
  (void)std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  return {{"version", SWAPD_VERSION},     {"commit", SWAPD_COMMIT}, {"kernel", name.release},
          {"cpu", cpu_of(cpuinfo.str())}, {"date", date},           {"command", command_of(arguments)}};
}

void stamp(std::vector<nlohmann::json>& lines, const nlohmann::json& origin) {
  for (nlohmann::json& line : lines)
    for (const auto& [field, value] : origin.items())
      if (!line.contains(field)) line[field] = value;
}

}  // namespace swapd::bench
