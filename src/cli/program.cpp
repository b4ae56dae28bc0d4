#include "cli/program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/fd.h"
#include "cli/failure.h"

namespace swapd::cli {
namespace {

namespace fs = std::filesystem;

// 0, or the errno that execve(2) would give.
int executable(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) < 0) return errno;
  if (!S_ISREG(file.st_mode)) return EACCES;
  return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) < 0 ? errno : 0;
}

bool is_32_bit(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<unsigned char, EI_NIDENT> ident{};
  if (!fd || ::read(fd.get(), ident.data(), ident.size()) != static_cast<ssize_t>(ident.size())) return false;
  return std::memcmp(ident.data(), ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS32;
}

std::string search_path() {
  if (const char* path = std::getenv("PATH"); path != nullptr) return path;
  std::string path(::confstr(_CS_PATH, nullptr, 0), '\0');
  ::confstr(_CS_PATH, path.data(), path.size());
  path.resize(std::strlen(path.c_str()));
  return path;
}

Error not_run(const std::string& name, int code) {
  if (code == ENOENT) return {ENOENT, "no program " + name + (name.find('/') == std::string::npos ? " in PATH" : "")};
  return {code, "cannot execute " + name + ": " + std::generic_category().message(code)};
}

}  // namespace

Result<Program> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    const int code = executable(name);
    if (code != 0) return not_run(name, code);
    return Program{name, is_32_bit(name)};
  }
  if (name.empty()) return not_run("''", ENOENT);
  // As execvp(3): a directory that cannot be searched or a file that may not be executed is passed over, and only
  // remembered for the case that there is nothing better. An empty element is the current directory.
  const std::string path = search_path();
  int code = ENOENT;
  for (std::size_t begin = 0; begin <= path.size();) {
    std::size_t end = path.find(':', begin);
    if (end == std::string::npos) end = path.size();
    const std::string candidate = end == begin ? name : path.substr(begin, end - begin) + "/" + name;
    const int found = executable(candidate);
    if (found == 0) return Program{candidate, is_32_bit(candidate)};
    if (found == EACCES) code = EACCES;
    begin = end + 1;
  }
  return not_run(name, code);
}

Result<std::string> find_swapd() {
  if (const char* given = std::getenv("SWAPD_BINARY"); given != nullptr && *given != '\0') {
    std::error_code error;
    const fs::path path = fs::absolute(given, error);
    if (error || ::access(path.c_str(), X_OK) < 0)
      return failure("SWAPD_BINARY names " + std::string(given) + ", which cannot be executed");
    return path.string();
  }
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"swapd", "../sbin/swapd", "../../daemon/swapd"})
    if (const fs::path path = here / place; !error && ::access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path))
      return path.string();
  Result<Program> program = find_program("swapd");
  if (!program) return failure("cannot find swapd: install it, or name it in SWAPD_BINARY");
  return fs::absolute(program->path, error).string();
}

}  // namespace swapd::cli
