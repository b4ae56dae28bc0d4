#include "shaping/throttled_file.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace swapd::bench {
namespace {

constexpr std::uint64_t file_node = 2;
constexpr std::uint32_t max_pages = 256, page = 4096;  // of one request
constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::uint64_t lasts_s = 3600;  // what is told of the file does not change

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * second_ns + now.tv_nsec;
}

class Answer {
 public:
  Answer(int device, const fuse_in_header& to) : device_(device), header_{.unique = to.unique} {}
  void body(const void* bytes, std::size_t size) const { send(0, bytes, size); }
  template <typename Body>
  void with(const Body& out) const {
    body(&out, sizeof out);
  }
  void error(int code) const { send(-code, nullptr, 0); }
  void nothing() const { send(0, nullptr, 0); }

 private:
  void send(int error, const void* bytes, std::size_t size) const {
    fuse_out_header header = header_;
    header.error = error;
    header.len = static_cast<std::uint32_t>(sizeof header + size);
    std::vector<char> message(header.len);
    std::memcpy(message.data(), &header, sizeof header);
    if (size != 0) std::memcpy(message.data() + sizeof header, bytes, size);
    (void)!::write(device_, message.data(), message.size());
  }
  int device_;
  fuse_out_header header_;
};

}  // namespace

Result<std::unique_ptr<ThrottledFile>> ThrottledFile::make(const std::string& backing, const std::string& at) {
  std::unique_ptr<ThrottledFile> file(new ThrottledFile);
  file->at_ = at;
  file->backing_.reset(::open(backing.c_str(), O_RDWR | O_CLOEXEC));
  struct stat st {};
  if (!file->backing_ || ::fstat(file->backing_.get(), &st) != 0) return errno_error(backing);
  file->size_ = static_cast<std::uint64_t>(st.st_size);
  file->device_.reset(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!file->device_) return errno_error("/dev/fuse");
  if (::mkdir(at.c_str(), 0700) != 0) return errno_error(at);
  const std::string options = "fd=" + std::to_string(file->device_.get()) +
                              ",rootmode=40000,user_id=0,group_id=0,max_read=" + std::to_string(max_pages * page);
  if (::mount("swapbench", at.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return errno_error("mounting " + at);
  file->mounted_ = true;
  file->thread_ = std::jthread([served = file.get()](const std::stop_token& stop) { served->serve(stop); });
  return file;
}

ThrottledFile::~ThrottledFile() {
  rate_ = 0;
  if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

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
  std::vector<char> request((max_pages + 4) * page), data(max_pages * page);
  const auto attributes = [&](std::uint64_t node) {
    fuse_attr out{};
    out.ino = node;
    out.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0700 : S_IFREG | 0600;
    out.nlink = 1;
    out.size = node == FUSE_ROOT_ID ? 0 : size_;
    out.blocks = out.size / 512;
    out.blksize = page;
    return out;
  };
  while (!stop.stop_requested()) {
    pollfd waiting{device_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 100) <= 0) continue;
    const ssize_t got = ::read(device_.get(), request.data(), request.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) continue;
    if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) return;  // ENODEV: unmounted
    fuse_in_header in;
    std::memcpy(&in, request.data(), sizeof in);
    const char* body = request.data() + sizeof in;
    const Answer answer(device_.get(), in);
    switch (in.opcode) {
      case FUSE_INIT: {
        fuse_init_in asked;
        std::memcpy(&asked, body, sizeof asked);
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = FUSE_KERNEL_MINOR_VERSION;
        out.max_readahead = asked.max_readahead;
        out.flags = asked.flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_ASYNC_DIO);
        out.max_pages = max_pages;
        out.max_write = max_pages * page;
        out.max_background = 64;
        out.congestion_threshold = 48;
        answer.with(out);
        break;
      }
      case FUSE_LOOKUP: {
        if (std::string_view(body) != "file") {
          answer.error(ENOENT);
          break;
        }
        fuse_entry_out out{};
        out.nodeid = file_node;
        out.entry_valid = out.attr_valid = lasts_s;
        out.attr = attributes(file_node);
        answer.with(out);
        break;
      }
      case FUSE_GETATTR:
      case FUSE_SETATTR: {  // its times: there are none
        fuse_attr_out out{};
        out.attr_valid = lasts_s;
        out.attr = attributes(in.nodeid);
        answer.with(out);
        break;
      }
      case FUSE_OPEN:
      case FUSE_OPENDIR:
        answer.with(fuse_open_out{});
        break;
      case FUSE_READ: {
        fuse_read_in asked;
        std::memcpy(&asked, body, sizeof asked);
        const std::size_t size = std::min<std::size_t>(asked.size, data.size());
        pay(size);
        const ssize_t n = ::pread(backing_.get(), data.data(), size, static_cast<off_t>(asked.offset));
        n < 0 ? answer.error(errno) : answer.body(data.data(), static_cast<std::size_t>(n));
        break;
      }
      case FUSE_WRITE: {
        fuse_write_in asked;
        std::memcpy(&asked, body, sizeof asked);
        pay(asked.size);
        const ssize_t n = ::pwrite(backing_.get(), body + sizeof asked, asked.size, static_cast<off_t>(asked.offset));
        fuse_write_out out{};
        out.size = static_cast<std::uint32_t>(std::max<ssize_t>(n, 0));
        n < 0 ? answer.error(errno) : answer.with(out);
        break;
      }
      case FUSE_FLUSH:
      case FUSE_FSYNC:
      case FUSE_RELEASE:
      case FUSE_RELEASEDIR:
        answer.nothing();
        break;
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
        break;  // want no answer
      default:
        answer.error(ENOSYS);
    }
  }
}

}  // namespace swapd::bench
