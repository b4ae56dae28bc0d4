// Waits in io_uring_enter: what the outstanding requests are for.
#include "blocked_program.h"
#include "sys/bpf/bpf_pieces.h"
#include "sys/bpf/io_uring_requests.h"

namespace swapd::observe {
namespace {

class Rings : public ResolverTest {
 protected:
  void SetUp() override {
    if (const auto rings = sys::RingRequests::open(); !rings.ok()) GTEST_SKIP() << rings.error().text();
  }
};

struct RingCase {
  const char* scenario;
  ResourceKind kind;
};

class RingWait : public Rings, public testing::WithParamInterface<RingCase> {};

TEST_P(RingWait, IsForEachOutstandingRequest) {
  const RingCase& expected = GetParam();
  const Story story = start("ring", expected.scenario);
  EXPECT_FALSE(resolver_.quick(story.site).complete);
  EXPECT_EQ(resolver_.full(story.site).awaited.size(), 2U);
  expect_provider(story, expected.kind);
  EXPECT_EQ(resolver_.quick(story.site).awaited.size(), 2U) << "what was found is the next guess";
}

INSTANTIATE_TEST_SUITE_P(
    Requests, RingWait,
    testing::Values(RingCase{"ring-read", ResourceKind::pipe}, RingCase{"ring-single-issuer", ResourceKind::pipe},
                    RingCase{"ring-poll", ResourceKind::pipe}, RingCase{"ring-closed", ResourceKind::pipe},
                    RingCase{"ring-fixed", ResourceKind::pipe}, RingCase{"ring-registered", ResourceKind::pipe},
                    RingCase{"ring-epoll", ResourceKind::pipe}, RingCase{"ring-recv", ResourceKind::socket}),
    [](const auto& test) { return test_name(test.param.scenario); });

TEST_F(Rings, ANumberThatIsAnotherEventfdNowDoesNotNameIt) {
  const Story story = start("ring", "ring-eventfd");
  std::vector<ResourceKind> kinds;
  for (const Resource& resource : resolver_.full(story.site).awaited) kinds.push_back(resource.kind);
  EXPECT_THAT(kinds, testing::UnorderedElementsAre(ResourceKind::pipe, ResourceKind::unknown));
}

TEST_F(Rings, OfAThreadThatIsNotItsProcessesFirst) {
  if (const Status any = (*sys::RingRequests::open())->lists_any_thread(); !any) GTEST_SKIP() << any.error().text();
  const Story story = start("ring", "ring-thread");
  EXPECT_EQ(resolver_.full(story.site).awaited.size(), 1U);
  expect_provider(story, ResourceKind::pipe);
}

TEST_F(Rings, OneThatWaitsForTimeAloneIsUnknown) {
  const Story story = start("ring", "ring-timeout");
  EXPECT_THAT(resolver_.full(story.site).awaited, testing::ElementsAre(Resource{}));
}

TEST_F(Rings, WhereTheKernelRefusesTheProgramTheWaitIsUnknownAndThatIsNamed) {
  sys::refuse_programs({"rings.list_requests"});
  const Story story = start("ring", "ring-read");
  const auto awaited = resolver_.full(story.site).awaited;
  sys::refuse_programs({});
  EXPECT_THAT(awaited, testing::ElementsAre(Resource{}));
  const auto missing = resolver_.missing();
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_THAT(missing[0].why, testing::HasSubstr("prog 'list_requests'"));
}

TEST_F(Rings, AnotherDescriptorIsNoRing) {
  const auto rings = sys::RingRequests::open();
  ASSERT_TRUE(rings.ok());
  EXPECT_EQ((*rings)->list(::getpid(), 0, false).error().code(), EBADF);
  EXPECT_EQ((*rings)->list(::getpid(), -1, false).error().code(), EBADF);
  EXPECT_EQ((*rings)->list(::getpid(), 1 << 20, true).error().code(), EBADF);
}

}  // namespace
}  // namespace swapd::observe
