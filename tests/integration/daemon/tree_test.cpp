// Directories and inodes under a limit: what the disk reads for them in device mode, how many calls there are where the
// class counts operations (reports of du, find and rm under a limit).
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "shaping_session.h"

namespace swapd::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr int directories = 12, files_in_each = 1000;
constexpr double limit = 2 * mib;  // bytes a second

void make_tree(const std::string& path, int directories_in_it) {
  for (int i = 0; i < directories_in_it; ++i) {
    const std::string directory = path + "/" + std::to_string(i);
    fs::create_directories(directory);
    for (int j = 0; j < files_in_each; ++j) std::ofstream(directory + "/" + std::to_string(j));
  }
}

// An ext4 on a loop device, whose tree nobody has looked at since it was mounted.
class TreeDisk {
 public:
  explicit TreeDisk(std::string at) : image_(at + ".image"), path_(std::move(at)) {
    fs::create_directory(path_);
    made_ = run("truncate -s 128M " + image_) &&
            run("mkfs.ext4 -q -N 30000 -E lazy_itable_init=0,lazy_journal_init=0 " + image_) && mount();
    if (made_) make_tree(path_ + "/tree", directories);
  }
  ~TreeDisk() {
    unmount();
    fs::remove(image_);
  }
  TreeDisk(const TreeDisk&) = delete;
  TreeDisk& operator=(const TreeDisk&) = delete;
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] std::string tree() const { return path_ + "/tree"; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool forget() { return unmount() && mount(); }
  [[nodiscard]] long long read() const {
    struct stat st {};
    if (::stat(path_.c_str(), &st) != 0) return 0;
    std::ifstream in("/sys/dev/block/" + std::to_string(major(st.st_dev)) + ":" + std::to_string(minor(st.st_dev)) +
                     "/stat");
    long long requests = 0, merged = 0, sectors = 0;
    in >> requests >> merged >> sectors;
    return 512 * sectors;
  }

 private:
  static bool run(const std::string& line) { return std::system((line + " >/dev/null 2>&1").c_str()) == 0; }
  bool mount() {
    mounted_ = run("mount -o loop " + image_ + " " + path_);
    return mounted_;
  }
  bool unmount() {
    if (std::exchange(mounted_, false) && !run("umount " + path_)) ::umount2(path_.c_str(), MNT_DETACH);
    return true;
  }
  std::string image_, path_;
  bool mounted_ = false, made_ = false;
};

class Tree : public ShapingSession {};

// The disk that the class names is not the one that the programs are on.
TEST_P(Tree, TheDiskReadsNoMoreThanTheLimit) {
  begin();
  TreeDisk disk(session->path("disk"));
  if (!disk.made()) GTEST_SKIP() << "no ext4 can be mounted on a loop device";
  must({"class", "create", "slow", "--device", disk.path(), "--both", "2MiB", "--mode", "device"});
  for (const std::string line : {"du -s .", "find -size +1M", "rm -rf *"}) {
    ASSERT_TRUE(disk.forget());
    const long long before = disk.read();
    const auto begun = steady_clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(steady_clock::now() - begun).count(); };
    const auto seconds = [&] { return static_cast<double>(disk.read() - before) / limit; };
    const pid_t pid =
        session->start({"--class", "slow"}, {"/bin/sh", "-c", "cd " + disk.tree() + "; exec " + line + " >/dev/null"});
    double ahead = 0;
    EXPECT_TRUE(eventually(
        [&] {
          const double now = passed();
          ahead = std::max(ahead, seconds() - now);
          siginfo_t over{};
          return ::waitid(P_PID, static_cast<id_t>(pid), &over, WEXITED | WNOHANG | WNOWAIT) == 0 && over.si_pid == pid;
        },
        std::chrono::seconds(20)))
        << line;
    const double needed = passed();
    EXPECT_EQ(session->wait(pid), 0) << line;
    EXPECT_GE(seconds(), 1.2) << line << "has to read them all";
    EXPECT_LT(ahead, 1.1) << line;
    EXPECT_LT(needed, seconds() + 2) << line << "stands still for nothing";
  }
}

TEST_P(Tree, CallsAreCountedWhereOperationsAre) {
  begin();
  const std::string tree = session->path("tree");
  make_tree(tree, 1);
  must({"class", "create", "few", "--operations", "500"});
  must({"class", "create", "free", "--both", "100MiB"});
  const auto seconds_of_du = [&](const std::string& class_name) {
    const auto begun = steady_clock::now();
    EXPECT_EQ(session->wait(session->start({"--class", class_name}, {"/usr/bin/du", "-s", tree})), 0);
    return std::chrono::duration<double>(steady_clock::now() - begun).count();
  };
  EXPECT_LT(seconds_of_du("free"), 1.0);
  const double needed = seconds_of_du("few");
  EXPECT_GE(needed, 1.8) << "a thousand files at 500 a second";
  EXPECT_LT(needed, 4.0);
  EXPECT_GE(shown("few")["devices"][0]["calls"], files_in_each);
}

INSTANTIATE_TEST_SUITE_P(Observers, Tree, ::testing::Values("bpf", "seccomp"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace swapd::test
