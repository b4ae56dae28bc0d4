// Any bytes are a recording or one printable line that says why not, and a recording is replayed to the same words each
// time. What was read is written as lines that are read as the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "replay/encode.h"
#include "replay/playback.h"

namespace {

template <typename Read>
bool each_line(std::string_view text, Read read) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const bool whole = end != std::string_view::npos;
    if (!read(text.substr(0, end), whole)) return false;
    text.remove_prefix(whole ? end + 1 : text.size());
  }
  return true;
}

std::string played(std::string_view text) {
  std::string out;
  swapd::replay::Playback playback("fuzz.rec", true, [&](const std::string& line) { out += line + '\n'; });
  const auto refused = [&](const swapd::Error& error) {
    const std::string& line = error.context();
    if (!line.starts_with("fuzz.rec:") || line.find('\n') != std::string::npos || line.size() > 300) std::abort();
  };
  const bool read = each_line(text, [&](std::string_view line, bool whole) {
    const swapd::Status one = playback.read(line, whole);
    if (!one) refused(one.error());
    return one.ok();
  });
  if (!read) return out + "refused";
  if (const auto finished = playback.finish(); !finished) refused(finished.error());
  return out;
}

// The text that its records give, as far as it can be read.
std::string written(std::string_view text) {
  std::string out;
  swapd::replay::Decoder decoder("fuzz.rec");
  swapd::replay::Encoder encoder;
  each_line(text, [&](std::string_view line, bool) {
    const auto record = decoder.read(line);
    if (record && *record) encoder.add(out, **record);
    return record.ok();
  });
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (played(text) != played(text)) std::abort();
  const std::string once = written(text);
  if (written(once) != once) std::abort();
  return 0;
}
