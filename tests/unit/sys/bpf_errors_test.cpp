// A complaint of libbpf becomes the reason of an error, in the thread that asked.
#include "sys/bpf/bpf_errors.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <latch>
#include <string>
#include <thread>

namespace swapd::sys {
namespace {

void complain(const std::string& file) { EXPECT_EQ(::bpf_object__open_file(file.c_str(), nullptr), nullptr); }
std::string reason() { return FirstWarning::error(ENOENT, "loading").text(); }

TEST(FirstWarningTest, TheFirstComplaintIsTheReason) {
  const FirstWarning warning;
  complain("/nonexistent/one");
  complain("/nonexistent/two");
  EXPECT_NE(reason().find("/nonexistent/one"), std::string::npos) << reason();
  EXPECT_EQ(reason().find("/nonexistent/two"), std::string::npos) << reason();
}

TEST(FirstWarningTest, WithoutOneThereIsNoReason) {
  const FirstWarning warning;
  EXPECT_EQ(reason().find("nonexistent"), std::string::npos) << reason();
}

// swapd's threads load programs at the same time: the one that ends first takes nothing from the other.
TEST(FirstWarningTest, EachThreadHasItsOwn) {
  std::latch other_has_begun(1), this_has_begun(1), other_has_ended(1);
  std::string others;
  std::thread other([&] {
    {
      const FirstWarning warning;
      other_has_begun.count_down();
      this_has_begun.wait();
      complain("/nonexistent/other");
      others = reason();
    }
    other_has_ended.count_down();
  });
  other_has_begun.wait();
  const FirstWarning warning;
  this_has_begun.count_down();
  other_has_ended.wait();
  complain("/nonexistent/own");
  EXPECT_NE(reason().find("/nonexistent/own"), std::string::npos) << reason();
  EXPECT_NE(others.find("/nonexistent/other"), std::string::npos) << others;
  other.join();
}

}  // namespace
}  // namespace swapd::sys
