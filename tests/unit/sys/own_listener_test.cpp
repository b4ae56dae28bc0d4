// Program files that ask the kernel for a seccomp listener, known by the constants of their code.
#include "sys/seccomp/own_listener.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace swapd::sys {
namespace {

using Code = std::vector<unsigned char>;

// A file with one executable segment.
std::vector<std::byte> program(const Code& code, unsigned flags = PF_R | PF_X) {
  std::vector<std::byte> image(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + code.size());
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = EM_X86_64;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = flags;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = code.size();
  std::memcpy(image.data(), &header, sizeof header);
  std::memcpy(image.data() + sizeof header, &segment, sizeof segment);
  std::memcpy(image.data() + segment.p_offset, code.data(), code.size());
  return image;
}

Code joined(const std::vector<Code>& parts) {
  Code all;
  for (const Code& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const Code call{0xbf, 0x3d, 0x01, 0, 0};                // mov $317, %edi: syscall(SYS_seccomp, …)
const Code set_mode{0xbe, 1, 0, 0, 0};                  // mov $1, %esi
const Code listener{0xba, 8, 0, 0, 0};                  // mov $8, %edx
const Code plain{0xba, 1, 0, 0, 0};                     // mov $1, %edx: TSYNC
const Code receive{0xbe, 0x00, 0x21, 0x50, 0xc0};       // mov $SECCOMP_IOCTL_NOTIF_RECV, %esi
const Code long_call{0x48, 0xc7, 0xc0, 0x3d, 1, 0, 0};  // mov $317, %rax

TEST(OwnListener, ACallWithTheFlagAsksForOne) {
  EXPECT_TRUE(asks_for_listener(program(joined({listener, set_mode, call}))));
  EXPECT_TRUE(asks_for_listener(program(joined({long_call, set_mode, listener}))));
}

TEST(OwnListener, AFilterWithoutAListenerIsNoReason) {
  EXPECT_FALSE(asks_for_listener(program(joined({plain, set_mode, call}))));
  EXPECT_FALSE(asks_for_listener(program(joined({call, Code(200, 0x90), set_mode, listener})))) << "another call's";
}

TEST(OwnListener, FlagsThatAreMadeUpAtRunTimeAreToldByTheIoctlOfAListener) {
  EXPECT_TRUE(asks_for_listener(program(joined({call, Code(500, 0x90), receive}))));
  EXPECT_FALSE(asks_for_listener(program(receive))) << "it answers another program's";
}

TEST(OwnListener, DataIsNotCode) {
  EXPECT_FALSE(asks_for_listener(program(joined({listener, set_mode, call}), PF_R)));
  EXPECT_FALSE(asks_for_listener(program({0x3d, 0x01, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0})));
}

TEST(OwnListener, WhatIsNoProgramAsksForNothing) {
  EXPECT_FALSE(asks_for_listener({}));
  auto image = program(joined({listener, set_mode, call}));
  image.resize(sizeof(Elf64_Ehdr));
  EXPECT_FALSE(asks_for_listener(image));
  EXPECT_FALSE(file_asks_for_listener("/nonexistent"));
  EXPECT_FALSE(file_asks_for_listener("/"));
  EXPECT_FALSE(file_asks_for_listener("/bin/sh"));
}

}  // namespace
}  // namespace swapd::sys
