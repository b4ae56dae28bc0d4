// Any text as what swapd answers: swapctl prints something, or says what is wrong with it, and nothing that it prints
// steers a terminal but its own paint.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/render.h"
#include "cli/top/top_io.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace swapd::cli;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Paint plain;
  const std::function<std::string(const std::string&)> renders[] = {
      render_dot,
      [&](const std::string& json) { return render_status(json, plain); },
      [&](const std::string& json) { return render_ps(json, plain); },
      [&](const std::string& json) { return render_why(json, plain); },
      [&](const std::string& json) { return render_event(json, plain); },
      [&](const std::string& json) { return render_classes(json, plain); },
      [&](const std::string& json) { return top_io_text(top_devices(json), nullptr, 0, 80); }};
  for (const auto& render : renders) {
    try {
      for (const char c : render(text))
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
    } catch (const nlohmann::json::exception&) {  // the verb says it in one line
    }
  }
  return 0;
}
