// A directory like /sys/fs/cgroup in which there is one hierarchy only: v1's freezer, or v2.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace swapd::test {

class CgroupRoot {
 public:
  explicit CgroupRoot(std::string_view version) {
    namespace fs = std::filesystem;
    std::string name = fs::temp_directory_path() / "swapd-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) return;
    path_ = name;
    const fs::path here = "/sys/fs/cgroup";
    const bool v1 = version == "v1";
    hierarchy_ = v1 ? here / "freezer" : fs::exists(here / "unified") ? here / "unified" : here;
    if (fs::exists(hierarchy_)) fs::create_directory_symlink(hierarchy_, path_ / (v1 ? "freezer" : "unified"));
  }
  ~CgroupRoot() { std::filesystem::remove_all(path_); }
  CgroupRoot(const CgroupRoot&) = delete;
  CgroupRoot& operator=(const CgroupRoot&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const std::filesystem::path& hierarchy() const { return hierarchy_; }  // where it really is
  [[nodiscard]] bool is_there() const { return std::filesystem::exists(hierarchy_ / "cgroup.procs"); }

 private:
  std::filesystem::path path_, hierarchy_;
};

}  // namespace swapd::test
