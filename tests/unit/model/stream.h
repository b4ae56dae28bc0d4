// Random events of a few threads and resources: the same ones for the same seed.
#pragma once

#include <optional>
#include <random>
#include <type_traits>
#include <vector>

#include "unit/model/world.h"

namespace swapd::test {

class Stream {
 public:
  explicit Stream(unsigned seed) : random_(seed) {}

  Event next() {
    const ThreadId who = any_thread();
    now_ += milliseconds(1);
    switch (pick(14)) {
      case 0:
      case 1:
        return Enrolled{now_,
                        who,
                        who.tid,
                        1000,
                        nice(pick(40) - 20),
                        static_cast<ClassId>(pick(4)),
                        static_cast<Weight>(1 + pick(10'000))};
      case 2:
      case 3:
      case 4:
        return Accessed{now_, who, any_resource(), static_cast<Evidence>(pick(6))};
      case 5:
        return Released{now_, who, any_resource()};
      case 6:
      case 7:
      case 8:
        return Blocked{now_, who, pick(300), many([&] { return any_resource(); })};
      case 9:
        return Woken{now_, who, maybe(any_thread()), maybe(any_resource()), pick(4) == 0};
      case 10:
        return Holders{now_, any_resource(), static_cast<Evidence>(3 + pick(3)), many([&] { return any_thread(); })};
      case 11:
      case 12: {
        const auto path = many([&] { return any_thread(); });
        return QuantumUsed{now_, who, {path.begin(), path.end()}};
      }
      default:
        if (pick(2) == 0) return Execed{now_, who};
        return Exited{now_, who};
    }
  }
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  ThreadId any_thread() { return {1000 + pick(12), static_cast<std::uint64_t>(pick(8) == 0 ? 2 : 1)}; }

 private:
  Resource any_resource() {
    const std::uint64_t tid = std::uint64_t{1000} + pick(12);
    switch (pick(6)) {
      case 0:
        return {ResourceKind::signal, {tid, 1}};
      case 1:
        return {ResourceKind::child_exit, {tid, 1}};
      default:
        return {static_cast<ResourceKind>(pick(4)), {static_cast<std::uint64_t>(pick(4)), 0}};
    }
  }
  template <typename Make>
  std::vector<std::invoke_result_t<Make>> many(Make make) {
    std::vector<std::invoke_result_t<Make>> made;
    for (int i = pick(5); i > 0; --i) made.push_back(make());
    return made;
  }
  template <typename T>
  std::optional<T> maybe(T value) {
    return pick(3) == 0 ? std::nullopt : std::optional<T>(value);
  }
  std::mt19937 random_;
  Time now_{};
};

}  // namespace swapd::test
