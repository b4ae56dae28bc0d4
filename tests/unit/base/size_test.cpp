#include "base/size.h"

#include <gtest/gtest.h>

namespace swapd {
namespace {

TEST(Size, IsReadAsPeopleWriteIt) {
  const std::pair<const char*, std::int64_t> good[] = {{"0", 0},
                                                       {"1000", 1000},
                                                       {"5B", 5},
                                                       {"64K", 65536},
                                                       {"64KiB", 65536},
                                                       {"64 KiB", 65536},
                                                       {"10 MiB/s", 10 << 20},
                                                       {"1.5G", 1610612736},
                                                       {" 2kB ", 2000},
                                                       {"3MB", 3'000'000},
                                                       {"1TB/s", 1'000'000'000'000},
                                                       {"1024TiB", std::int64_t{1} << 50}};
  for (const auto& [text, bytes] : good) EXPECT_EQ(parse_size(text), bytes) << text;
  for (const char* bad :
       {"", " ", "K", "-1", "1 2", "1e3", "0x10", "1kb", "1mb", "1 M B", "1025TiB", "inf", "nan", "1/s/s", "1KiB/m"})
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
}

TEST(Size, IsWrittenSoThatItReadsTheSame) {
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(65536), "64KiB");
  EXPECT_EQ(size_text(std::int64_t{10} << 20), "10MiB");
  EXPECT_EQ(size_text(std::int64_t{1} << 50), "1024TiB");
  for (const std::int64_t bytes : {1LL, 1023LL, 1024LL, 1025LL, 5LL << 30, 123456789LL})
    EXPECT_EQ(parse_size(size_text(bytes)), bytes);
}

}  // namespace
}  // namespace swapd
