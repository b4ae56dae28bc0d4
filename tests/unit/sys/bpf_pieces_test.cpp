#include "sys/bpf/bpf_pieces.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace swapd::sys {
namespace {

constexpr std::array<std::string_view, 1> alone{"on_softirq"};
constexpr std::array<std::string_view, 2> together{"on_fork", "on_exit"};
constexpr std::array<BpfPiece, 2> pieces{alone, together};

Error refused(const std::string& program) {
  return {EINVAL, "loading the BPF programs: prog '" + program + "': BPF program load failed: Invalid argument"};
}

// A kernel that refuses these programs, one at a load.
struct Kernel {
  std::vector<std::string> refuses;
  int loads = 0;

  Result<int> load(std::span<const Refusal> without) {
    ++loads;
    for (const std::string& program : refuses)
      if (!left_out(without, program)) return refused(program);
    return loads;
  }
};

std::vector<Refusal> load(Kernel& kernel, bool succeeds) {
  std::vector<Refusal> refusals;
  const auto loaded =
      load_in_pieces(pieces, refusals, [&](std::span<const Refusal> without) { return kernel.load(without); });
  EXPECT_EQ(loaded.ok(), succeeds);
  return refusals;
}

TEST(BpfPieces, AWarningNamesTheProgram) {
  EXPECT_EQ(program_of("prog 'on_send': failed to find kernel BTF type ID of 'sock_send_length': -3"), "on_send");
  EXPECT_EQ(program_of("loading: prog 'on_exit': BPF program load failed"), "on_exit");
  EXPECT_EQ(program_of("failed to load object 'tracer'"), "");
  EXPECT_EQ(program_of("prog 'cut"), "cut");
  EXPECT_EQ(program_of(""), "");
}

TEST(BpfPieces, WhyBeginsWithTheProgram) {
  EXPECT_EQ(refusal_of({EINVAL, "loading the BPF programs: prog 'a': refused"}), "prog 'a': refused");
  EXPECT_EQ(refusal_of({EPERM, "CAP_BPF is missing"}), "CAP_BPF is missing: Operation not permitted");
}

TEST(BpfPieces, TheVerifiersLastWordBeforeItsStatistics) {
  EXPECT_EQ(verifiers_objection("0: (95) exit\nR0 !read_ok \nprocessed 1 insns (limit 1000000) max_states 0\n"
                                "-- END PROG LOAD LOG --\n"),
            "R0 !read_ok");
  EXPECT_EQ(verifiers_objection("unreachable insn 1\n-- END PROG LOAD LOG --\n"), "unreachable insn 1");
  EXPECT_EQ(verifiers_objection("-- BEGIN PROG LOAD LOG --\n\n"), "");
  EXPECT_EQ(verifiers_objection("no end"), "no end");
}

TEST(BpfPieces, AllThatTheKernelTakesIsLoadedAtOnce) {
  Kernel kernel;
  EXPECT_TRUE(load(kernel, true).empty());
  EXPECT_EQ(kernel.loads, 1);
}

TEST(BpfPieces, ARefusedProgramIsLeftOutWithThoseThatGoWithIt) {
  Kernel kernel{.refuses = {"on_exit", "on_softirq"}};
  const auto refusals = load(kernel, true);
  ASSERT_EQ(refusals.size(), 2U);
  EXPECT_TRUE(left_out(refusals, "on_exit"));
  EXPECT_TRUE(left_out(refusals, "on_fork"));
  EXPECT_TRUE(left_out(refusals, "on_softirq"));
  EXPECT_FALSE(left_out(refusals, "on_switch"));
  EXPECT_EQ(refusals[0].error.context(), refused("on_exit").context());
}

TEST(BpfPieces, WithoutAProgramOfNoPieceNothingIsLoaded) {
  Kernel kernel{.refuses = {"on_softirq", "on_switch"}};
  load(kernel, false);
  EXPECT_EQ(kernel.loads, 2);
}

// Not for ever: a kernel that names what was left out already has another reason.
TEST(BpfPieces, TheSameRefusalTwiceEndsIt) {
  std::vector<Refusal> refusals;
  int loads = 0;
  const auto loaded = load_in_pieces(pieces, refusals, [&](std::span<const Refusal>) -> Result<int> {
    ++loads;
    return refused("on_fork");
  });
  EXPECT_FALSE(loaded.ok());
  EXPECT_EQ(loads, 2);
}

TEST(BpfPieces, NamesAreAnObjectsAndAPrograms) {
  refuse_programs({"netio.on_birth"});
  EXPECT_TRUE(is_refused("netio.on_birth"));
  EXPECT_FALSE(is_refused("lastio.on_birth"));
  refuse_programs({});
  EXPECT_FALSE(is_refused("netio.on_birth"));
}

}  // namespace
}  // namespace swapd::sys
