// A word for results that do not matter.
#pragma once

#include "base/result.h"

namespace swapd {

// For a call on a thread, process or notification that may have ended meanwhile: that is no failure, and there is
// nothing left to do (Error::gone()).
template <typename T>
void ignore_gone(const Result<T>& /*result*/) {}

}  // namespace swapd
