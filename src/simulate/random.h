// Random numbers of a simulation: the same on every machine for the same seed, which the distributions of the standard
// library do not promise. Pure.
//
// xoshiro256++, seeded by splitmix64 as its authors advise: 2^256 - 1 numbers, about a nanosecond each.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace swapd::simulate {

class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15U;
      std::uint64_t mixed = seed;
      mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
      mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
      word = mixed ^ (mixed >> 31U);
    }
  }
  [[nodiscard]] std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17U;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  // Above 0, at most 1.
  [[nodiscard]] double fraction() { return (static_cast<double>(next() >> 11U) + 1) * 0x1p-53; }
  // 0 to n - 1; the bias is below n / 2^32.
  [[nodiscard]] std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((next() >> 32U) * n) >> 32U);
  }
  // Exponentially distributed with mean 1.
  [[nodiscard]] double exponential() { return -std::log(fraction()); }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace swapd::simulate
