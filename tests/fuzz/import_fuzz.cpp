// Any text as another tool's configuration: it becomes a policy that swapd accepts, or one printable line says why not.
//
// The first byte chooses the tool; at a NUL a second file begins.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "policy/import/imported.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace swapd::policy;
  static constexpr std::array tools = {Tool::ananicy, Tool::system76, Tool::gamemode, Tool::cgrules};
  if (size == 0) return 0;
  const Tool tool = tools.at(data[0] % tools.size());
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t half = text.find('\0');
  std::vector<SourceFile> files = {{"fuzz.types", std::string(text.substr(0, half))}};
  if (half != std::string_view::npos) files.push_back({"fuzz.rules", std::string(text.substr(half + 1))});
  const auto imported = import_from(tool, files);
  if (!imported) {
    const std::string& line = imported.error().context();
    if (!line.starts_with("fuzz.") || line.find('\n') != std::string::npos || line.size() > 1000) std::abort();
    return 0;
  }
  const auto parsed = parse(policy_text(*imported, tool, "fuzz"), "made.toml");
  if (!parsed) {
    // So that a found input says what is wrong.
    std::fprintf(stderr, "%s\n", parsed.error().text().c_str());
    std::abort();
  }
  return 0;
}
