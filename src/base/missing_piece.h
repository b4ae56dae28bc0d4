// A piece of what swapd does that this kernel, or swapd's privileges, do not give. The rest works without it.
#pragma once

#include <string>

namespace swapd {

struct MissingPiece {
  std::string what;     // is not seen or not done, with the names of the kernel programs that would
  std::string why;      // one line, in the kernel's words
  std::string instead;  // what still works, and how
};

}  // namespace swapd
