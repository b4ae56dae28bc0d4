// Confidences of a model as plain values, worth keeping when swapd is replaced (docs/design.md, Guard).
#pragma once

#include "base/resource.h"
#include "base/thread_id.h"

namespace swapd::model {

struct SavedConfidence {
  ThreadId provider;
  Resource resource;
  int lead = 0;  // its confidence above (or below) K, which may be another by the time it is recalled
  bool operator==(const SavedConfidence&) const = default;
};

}  // namespace swapd::model
