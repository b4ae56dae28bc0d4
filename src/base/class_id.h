// A class of programs by its number among those of the policy in force; 0 is "default".
#pragma once

#include <cstdint>

namespace swapd {

using ClassId = std::uint16_t;

}  // namespace swapd
