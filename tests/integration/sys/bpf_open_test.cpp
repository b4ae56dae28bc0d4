// What the kernel's tracer needs before it watches anybody.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "sys/bpf/bpf_tracer.h"
#include "sys/bpf/kernel_offsets.h"

namespace swapd::sys {
namespace {

TEST(BpfOpen, NamesWhatIsMissing) {
  const auto no_btf = BpfTracer::open({.btf = "/proc/no_such"});
  ASSERT_FALSE(no_btf);
  EXPECT_NE(no_btf.error().text().find("no BTF"), std::string::npos) << no_btf.error().text();

  const auto without = [](int capability) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
      __user_cap_data_struct data[2] = {};
      ::syscall(SYS_capget, &header, data);
      for (const int gone : {CAP_SYS_ADMIN, capability}) data[gone / 32].effective &= ~(1U << (gone % 32));
      ::syscall(SYS_capset, &header, data);
      const auto opened = BpfTracer::open();
      const std::string name = capability == CAP_BPF ? "CAP_BPF" : "CAP_PERFMON";
      ::_exit(!opened && opened.error().text().find(name) != std::string::npos ? 0 : 1);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
  };
  EXPECT_EQ(without(CAP_BPF), 0);
  EXPECT_EQ(without(CAP_PERFMON), 0);
}

TEST(BpfPlaces, TheCodeThatRunsSoftInterrupts) {
  std::istringstream split(
      "ffffffff8135fb10 t do_softirq.part.0\nffffffff8135fb80 T other\n"
      "ffffffff81360bb0 T do_softirq\nffffffff81360bd0 T irq_enter_rcu\nffffffffc0000000 t do_softirq_x\t[module]\n");
  const SoftirqCode code = softirq_code(split);
  EXPECT_EQ(code[0].first, 0xffffffff8135fb10U);
  EXPECT_EQ(code[0].end, 0xffffffff8135fb80U);
  EXPECT_EQ(code[1].first, 0xffffffff81360bb0U);
  EXPECT_EQ(code[1].end, 0xffffffff81360bd0U);
  EXPECT_EQ(code[2].end, 0U);
  std::istringstream hidden("0000000000000000 t do_softirq\n0000000000000000 T other\n");
  EXPECT_EQ(softirq_code(hidden)[0].end, 0U);
  std::istringstream last("ffffffff8135fb10 t do_softirq\n");
  EXPECT_EQ(softirq_code(last)[0].first, 0U);
  std::istringstream odd("\nx\nffffffff8135fb10\nffffffff8135fb10 t\n");
  EXPECT_EQ(softirq_code(odd)[0].end, 0U);
}

}  // namespace
}  // namespace swapd::sys
