// Any text as what swapd answers: swapctl prints something, or says what is wrong with it, and nothing that it prints
// steers a terminal.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/render.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace swapd::cli;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const auto& render : {render_status, render_ps, render_why, render_dot, render_event}) {
    try {
      for (const char c : render(text))
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
    } catch (const nlohmann::json::exception&) {  // the verb says it in one line
    }
  }
  return 0;
}
