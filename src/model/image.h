// All that a model's future depends on, as plain values: what a recording begins with, so that a replay can begin in
// the middle of a run.
//
// Canonical: threads, resources and debits are sorted, ages are dense. Two models that will answer alike for ever have
// the same image, and the image of a restored image is that image.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/event.h"

namespace swapd::model {

enum class RunState : std::uint8_t { unknown, runnable, blocked };

struct ImageDebit {
  ThreadId thread;
  Resource resource;
  std::uint32_t count = 0;
  bool operator==(const ImageDebit&) const = default;
};

struct ImageThread {
  ThreadId id;
  pid_t tgid = 0;
  std::uint32_t uid = 0;
  SchedAttr base;
  RunState state = RunState::unknown;
  Time since{};
  std::int32_t call = -1;
  ClassId class_id = 0;
  Weight weight = usual_weight;
  std::optional<SchedAttr> counts_as;  // Ranked
  std::vector<Resource> awaited;       // in the order of Blocked::awaited
  std::vector<ImageDebit> debits;      // of the present wait, sorted by thread
  bool operator==(const ImageThread&) const = default;
};

struct ImageProvider {
  ThreadId thread;
  std::uint16_t confidence = 0;
  Evidence evidence = Evidence::accessed;
  std::uint32_t age = 0;  // among all providers of the model; the lower came first
  bool operator==(const ImageProvider&) const = default;
};

// One that has providers, or whose class is not that of all its waiters; what else is awaited only stands with these.
struct ImageResource {
  Resource key;
  ClassId class_id = 0;
  bool waited = false;
  std::vector<ImageProvider> providers;  // the paper's three lists, the one who would leave first in front
  bool operator==(const ImageResource&) const = default;
};

struct Image {
  std::vector<ImageThread> threads;
  std::vector<ImageResource> resources;
  bool operator==(const Image&) const = default;
};

}  // namespace swapd::model
