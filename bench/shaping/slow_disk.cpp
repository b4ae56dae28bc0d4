#include "shaping/slow_disk.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

namespace swapd::bench {
namespace {

constexpr unsigned long usual_read_ahead = 256;  // sectors: 128 KiB, as disks have it

Status write_to(const std::string& path, const std::string& text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return errno_error(path);
  return Done{};
}

// Of a hierarchy whose line in /proc/self/cgroup has this in the middle (":blkio:", "::").
std::string own_group(const std::string& middle) {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);)
    if (const auto at = line.find(middle); at != std::string::npos && line.find(':') == at)
      return line.substr(at + middle.size());
  return "";
}

}  // namespace

Result<std::unique_ptr<SlowDisk>> SlowDisk::make(std::uint64_t size, std::uint64_t rate, Budget budget) {
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  std::unique_ptr<SlowDisk> disk(new SlowDisk(std::move(*dir)));
  disk->rate_ = rate;
  if (Status set = disk->set_up(size, budget); !set) return Error(set.error()).in("making a slow disk");
  return disk;
}

Status SlowDisk::set_up(std::uint64_t size, Budget budget) {
  image_ = dir_.path() + "/disk";
  mount_ = dir_.path() + "/mnt";
  const Fd image(::open(image_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!image || ::ftruncate(image.get(), static_cast<off_t>(size)) != 0) return errno_error(image_);
  if (::mkdir(mount_.c_str(), 0711) != 0) return errno_error(mount_);
  if (budget == Budget::both) {
    auto file = ThrottledFile::make(image_, dir_.path() + "/slow");
    if (!file) return file.error();
    file_ = std::move(*file);
    image_ = file_->path();
  }
  int status = 0;
  const auto made =
      run_for_output({"/usr/sbin/mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image_}, status,
                     std::chrono::seconds(60));
  if (!made || status != 0) return made ? Error(EIO, "mkfs.ext4: " + wait_text(status)) : made.error();
  if (Status attached = attach(); !attached) return attached;
  return file_ ? Status(Done{}) : join_group();
}

Status SlowDisk::attach() {
  const Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  const int number = control ? ::ioctl(control.get(), LOOP_CTL_GET_FREE) : -1;
  if (number < 0) return errno_error("/dev/loop-control");
  loop_ = "/dev/loop" + std::to_string(number);
  const Fd image(::open(image_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  loop_fd_.reset(::open(loop_.c_str(), O_RDWR | O_CLOEXEC));
  loop_config config{};
  config.fd = static_cast<__u32>(image.get());
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;  // nothing of it in memory a second time
  if (!image || !loop_fd_ || ::ioctl(loop_fd_.get(), LOOP_CONFIGURE, &config) != 0) return errno_error(loop_);
  (void)::ioctl(loop_fd_.get(), BLKRASET, usual_read_ahead);
  struct stat st {};
  if (::fstat(loop_fd_.get(), &st) != 0) return errno_error(loop_);
  number_ = std::to_string(major(st.st_rdev)) + ":" + std::to_string(minor(st.st_rdev));
  if (::mount(loop_.c_str(), mount_.c_str(), "ext4", 0, nullptr) != 0) return errno_error("mounting " + loop_);
  mounted_ = true;
  return Done{};
}

Status SlowDisk::join_group() {
  const std::string v1 = "/sys/fs/cgroup/blkio", name = "/swapbench-" + std::to_string(::getpid());
  v2_ = !std::filesystem::exists(v1 + "/cgroup.procs");
  const std::string root = v2_ ? "/sys/fs/cgroup" : v1;
  group_before_ = root + own_group(v2_ ? "::" : ":blkio:");
  group_ = root + name;
  if (v2_) (void)write_to(root + "/cgroup.subtree_control", "+io");
  if (::mkdir(group_.c_str(), 0755) != 0 && errno != EEXIST) return errno_error(group_);
  return write_to(group_ + "/cgroup.procs", std::to_string(::getpid()));
}

Status SlowDisk::throttle(bool on) {
  if (file_) {
    file_->set_rate(on ? rate_ : 0);
    return Done{};
  }
  const std::string rate = on ? std::to_string(rate_) : v2_ ? "max" : "0";
  return v2_ ? write_to(group_ + "/io.max", number_ + " rbps=" + rate)
             : write_to(group_ + "/blkio.throttle.read_bps_device", number_ + " " + rate);
}

Result<std::string> SlowDisk::limited_group(std::uint64_t rate) {
  limited_group_ = group_ + "-limited";
  if (::mkdir(limited_group_.c_str(), 0755) != 0 && errno != EEXIST) return errno_error(limited_group_);
  const std::string each = std::to_string(rate);
  const std::vector<std::pair<std::string, std::string>> settings =
      v2_ ? std::vector<std::pair<std::string, std::string>>{{"io.max", "rbps=" + each + " wbps=" + each}}
          : std::vector<std::pair<std::string, std::string>>{{"blkio.throttle.read_bps_device", each},
                                                             {"blkio.throttle.write_bps_device", each}};
  for (const auto& [file, value] : settings)
    if (Status written = write_to(limited_group_ + "/" + file, number_ + " " + value); !written) return written.error();
  return limited_group_;
}

Status SlowDisk::write_file(const std::string& name, std::uint64_t size) const {
  const Fd file(::open((mount_ + "/" + name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const std::vector<char> block(1 << 20, 'x');
  for (std::uint64_t done = 0; done < size; done += block.size())
    if (!file || ::write(file.get(), block.data(), block.size()) != static_cast<ssize_t>(block.size()))
      return errno_error(name);
  return Done{};
}

Status SlowDisk::forget() {
  if (::umount(mount_.c_str()) != 0) return errno_error("unmounting " + loop_);
  mounted_ = false;
  (void)::ioctl(loop_fd_.get(), BLKFLSBUF, 0);
  if (::mount(loop_.c_str(), mount_.c_str(), "ext4", 0, nullptr) != 0) return errno_error("mounting " + loop_);
  mounted_ = true;
  return Done{};
}

SlowDisk::~SlowDisk() {
  (void)throttle(false);
  if (!group_before_.empty()) (void)write_to(group_before_ + "/cgroup.procs", std::to_string(::getpid()));
  if (mounted_ && ::umount(mount_.c_str()) != 0) (void)::umount2(mount_.c_str(), MNT_DETACH);
  loop_fd_.reset();  // and with it the device goes
  // Whoever just ended may still be counted there.
  for (const std::string& group : {limited_group_, group_})
    for (int tries = 0; !group.empty() && tries < 100 && ::rmdir(group.c_str()) != 0 && errno == EBUSY; ++tries)
      ::usleep(20'000);
}

}  // namespace swapd::bench
