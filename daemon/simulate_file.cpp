#include "simulate_file.h"

#include <cerrno>
#include <fstream>
#include <iostream>
#include <system_error>

#include "simulate/report.h"

namespace swapd::daemon {

int simulate_file(const std::string& file) {
  std::ifstream in(file);
  std::string text;
  for (std::string line; std::getline(in, line);) text += line + '\n';
  if (!in.eof()) {
    std::cerr << "swapd: " << file << ": cannot be read: " << std::generic_category().message(errno) << '\n';
    return 2;
  }
  // Each line goes out at once: a point of a large scenario takes minutes.
  const auto print = [](const std::string& line) { std::cout << line << std::endl; };
  if (const Status done = simulate::simulate(text, file, print); !done) {
    std::cerr << "swapd: " << done.error().context() << '\n';
    return 2;
  }
  if (!std::cout.flush()) {
    std::cerr << "swapd: cannot write the answer: is the disk full?\n";
    return 1;
  }
  return 0;
}

}  // namespace swapd::daemon
