// What busy's calls are made of: one side waits, the other lets it go on.
#pragma once

#include <string>
#include <vector>

namespace busy {

// A call that blocks, and who ends it. Both sides are made before the fork and live in processes of their own.
class Case {
 public:
  Case() = default;
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  virtual ~Case() = default;
  // Before each wait: in the process that waits, and in the other one.
  virtual void prepare() {}
  virtual void hinder() {}
  // The call; false: it gave what it should not, and errno stands.
  virtual bool wait(unsigned round) = 0;
  // Ends it, from the other process. waiter: its pid.
  virtual void end(int waiter, unsigned round) = 0;
};

struct Named {
  std::string name;
  Case* (*make)();
};

template <typename T>
Case* make() {
  return new T;
}

const std::vector<Named>& descriptor_cases();
const std::vector<Named>& other_cases();

}  // namespace busy
