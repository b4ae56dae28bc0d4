#include "shaping/throttled_file.h"

#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace swapd::bench {
namespace {

constexpr fuse_ino_t file_node = 2;
constexpr std::int64_t second_ns = 1'000'000'000;
constexpr double lasts_s = 3600;  // what is told of the file does not change

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * second_ns + now.tv_nsec;
}

}  // namespace

// The requests of the kernel (fuse_lowlevel.h). libfuse answers the others: open and release succeed, the rest is not
// supported.
struct ThrottledFile::Calls {
  static ThrottledFile& file(fuse_req_t request) { return *static_cast<ThrottledFile*>(fuse_req_userdata(request)); }

  static void init(void* /*file*/, fuse_conn_info* connection) {
    connection->want = connection->capable & (FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO);
    connection->max_background = 64;
    connection->congestion_threshold = 48;
  }
  static struct stat attributes(const ThrottledFile& file, fuse_ino_t node) {
    struct stat out {};
    out.st_ino = node;
    out.st_mode = node == FUSE_ROOT_ID ? S_IFDIR | 0700 : S_IFREG | 0600;
    out.st_nlink = 1;
    out.st_size = node == FUSE_ROOT_ID ? 0 : static_cast<off_t>(file.size_);
    out.st_blocks = out.st_size / 512;
    out.st_blksize = 4096;
    return out;
  }
  static void lookup(fuse_req_t request, fuse_ino_t /*parent*/, const char* name) {
    fuse_entry_param entry{};
    entry.ino = file_node;
    entry.attr = attributes(file(request), file_node);
    entry.attr_timeout = entry.entry_timeout = lasts_s;
    std::string_view(name) == "file" ? fuse_reply_entry(request, &entry) : fuse_reply_err(request, ENOENT);
  }
  static void getattr(fuse_req_t request, fuse_ino_t node, fuse_file_info* /*opened*/) {
    const struct stat st = attributes(file(request), node);
    fuse_reply_attr(request, &st, lasts_s);
  }
  static void setattr(fuse_req_t request, fuse_ino_t node, struct stat* /*times*/, int /*which*/,
                      fuse_file_info* opened) {
    getattr(request, node, opened);  // it has no times
  }
  static void read(fuse_req_t request, fuse_ino_t /*node*/, std::size_t size, off_t at, fuse_file_info* /*opened*/) {
    ThrottledFile& from = file(request);
    from.pay(size);
    from.data_.resize(std::max(from.data_.size(), size));
    const ssize_t n = ::pread(from.backing_.get(), from.data_.data(), size, at);
    n < 0 ? fuse_reply_err(request, errno) : fuse_reply_buf(request, from.data_.data(), static_cast<std::size_t>(n));
  }
  static void write(fuse_req_t request, fuse_ino_t /*node*/, const char* bytes, std::size_t size, off_t at,
                    fuse_file_info* /*opened*/) {
    ThrottledFile& to = file(request);
    to.pay(size);
    const ssize_t n = ::pwrite(to.backing_.get(), bytes, size, at);
    n < 0 ? fuse_reply_err(request, errno) : fuse_reply_write(request, static_cast<std::size_t>(n));
  }
  static constexpr fuse_lowlevel_ops all() {
    fuse_lowlevel_ops calls{};
    calls.init = init;
    calls.lookup = lookup;
    calls.getattr = getattr;
    calls.setattr = setattr;
    calls.read = read;
    calls.write = write;
    return calls;
  }
};

Result<std::unique_ptr<ThrottledFile>> ThrottledFile::make(const std::string& backing, const std::string& at) {
  std::unique_ptr<ThrottledFile> file(new ThrottledFile);
  file->at_ = at;
  file->backing_.reset(::open(backing.c_str(), O_RDWR | O_CLOEXEC));
  struct stat st {};
  if (!file->backing_ || ::fstat(file->backing_.get(), &st) != 0) return errno_error(backing);
  file->size_ = static_cast<std::uint64_t>(st.st_size);
  Fd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device) return errno_error("/dev/fuse");
  if (::mkdir(at.c_str(), 0700) != 0) return errno_error(at);
  // By itself: libfuse would ask fusermount(1) where it may not, and not say why it failed.
  const std::string options = "fd=" + std::to_string(device.get()) + ",rootmode=40000,user_id=0,group_id=0";
  if (::mount("swapbench", at.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return errno_error("mounting " + at);
  file->mounted_ = true;
  const fuse_lowlevel_ops calls = Calls::all();
  std::array<char*, 2> words{const_cast<char*>("swapbench"), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(1, words.data());
  file->session_.reset(fuse_session_new(&arguments, &calls, sizeof calls, file.get()));
  if (!file->session_) return Error(ENOMEM, "serving " + at);
  // The session owns the descriptor from here on.
  if (fuse_session_mount(file->session_.get(), ("/dev/fd/" + std::to_string(device.get())).c_str()) != 0)
    return Error(EIO, "serving " + at);
  (void)device.release();
  file->thread_ = std::jthread([served = file.get()](const std::stop_token& stop) { served->serve(stop); });
  return file;
}

ThrottledFile::~ThrottledFile() {
  rate_ = 0;
  if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void ThrottledFile::Free::operator()(fuse_session* session) const { fuse_session_destroy(session); }

// One request after another: the next is looked at when the disk is done with this one.
void ThrottledFile::pay(std::uint64_t bytes) {
  const std::uint64_t rate = rate_;
  if (rate == 0) return;
  free_at_ns_ = std::max(free_at_ns_, now_ns()) +
                static_cast<std::int64_t>(static_cast<double>(bytes) * second_ns / static_cast<double>(rate));
  const timespec until{.tv_sec = free_at_ns_ / second_ns, .tv_nsec = free_at_ns_ % second_ns};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) continue;
}

void ThrottledFile::serve(const std::stop_token& stop) {
  fuse_buf request{};
  while (!stop.stop_requested() && !fuse_session_exited(session_.get())) {
    pollfd waiting{fuse_session_fd(session_.get()), POLLIN, 0};
    if (::poll(&waiting, 1, 100) <= 0) continue;
    const int got = fuse_session_receive_buf(session_.get(), &request);
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got <= 0) break;  // unmounted
    fuse_session_process_buf(session_.get(), &request);
  }
  std::free(request.mem);
}

}  // namespace swapd::bench
