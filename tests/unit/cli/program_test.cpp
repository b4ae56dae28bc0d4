// The program is found as execvp(3) finds it.
#include "cli/program.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace swapd::cli {
namespace {

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    std::string name = (std::filesystem::temp_directory_path() / "swapd-test-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(directory_ + "/a/tool");  // a directory, which is no program
    std::filesystem::create_directories(directory_ + "/b");
    std::filesystem::create_directories(directory_ + "/c");
    path_ = ::getenv("PATH");
    ::setenv("PATH", (directory_ + "/missing:" + directory_ + "/a:" + directory_ + "/b:" + directory_ + "/c").c_str(),
             1);
  }
  ~ProgramTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(directory_);
  }
  void make(const std::string& name, mode_t mode, const std::string& content = "#!/bin/sh\n") const {
    std::ofstream(directory_ + "/" + name) << content;
    ::chmod((directory_ + "/" + name).c_str(), mode);
  }
  std::string directory_, path_;
};

TEST_F(ProgramTest, TheFirstOneThatMayBeExecutedIsTaken) {
  make("b/tool", 0644);
  make("c/tool", 0755);
  const Result<Program> program = find_program("tool");
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->path, directory_ + "/c/tool");
}

TEST_F(ProgramTest, OneThatMayNotBeExecutedIsRememberedWhereNothingBetterComes) {
  make("b/tool", 0644);
  const Result<Program> program = find_program("tool");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code(), EACCES);
}

TEST_F(ProgramTest, NothingIsNotFound) {
  for (const char* name : {"nothing", "", "/nonexistent/x"}) {
    const Result<Program> program = find_program(name);
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.error().code(), ENOENT) << name;
  }
}

TEST_F(ProgramTest, A32BitProgramIsRecognised) {
  std::string elf(64, '\0');
  elf.replace(0, SELFMAG, ELFMAG);
  elf[EI_CLASS] = ELFCLASS32;
  make("b/old", 0755, elf);
  elf[EI_CLASS] = ELFCLASS64;
  make("b/new", 0755, elf);
  EXPECT_TRUE(find_program("old")->is_32_bit);
  EXPECT_FALSE(find_program("new")->is_32_bit);
  make("b/script", 0755);
  EXPECT_FALSE(find_program("script")->is_32_bit);
}

}  // namespace
}  // namespace swapd::cli
