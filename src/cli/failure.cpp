#include "cli/failure.h"

namespace swapd::cli {

int report(std::ostream& err, const Error& error) {
  err << "swapctl: " << printable(error.context()) << std::endl;
  return error.code() == EINVAL || error.code() == ENOENT ? exit_usage : exit_failed;
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<unsigned char>(out[i]);
    // C1 controls are U+0080…U+009F: 0xC2 and a byte below 0xA0 in UTF-8.
    const bool c1 = byte == 0xC2 && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xA0;
    if (c1) out.replace(i, 2, "?");
    if (byte < 0x20 || byte == 0x7F) out[i] = '?';
  }
  return out;
}

}  // namespace swapd::cli
