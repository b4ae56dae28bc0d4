// Shared by the simulator's tests: scenarios from text and from files of the source tree.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "simulate/scenario.h"
#include "simulate/simulator.h"

namespace swapd::simulate::test {

inline std::filesystem::path source_dir() { return SWAPD_SOURCE_DIR; }

inline std::string contents(const std::filesystem::path& file) {
  const std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline Scenario scenario(std::string_view text) {
  Result<Scenario> parsed = parse_scenario(text, "s.toml");
  EXPECT_TRUE(parsed) << parsed.error().context();
  return parsed ? *parsed : Scenario{};
}

// A scenario of bench/simulate.
inline Scenario shipped(const std::string& name) {
  return scenario(contents(source_dir() / "bench/simulate" / (name + ".toml")));
}

inline Outcome run(const Scenario& of) { return Simulator(of).run(); }

}  // namespace swapd::simulate::test
