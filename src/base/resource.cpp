#include "base/resource.h"

#include <sys/sysmacros.h>

#include <cinttypes>
#include <cstdio>

#include "base/words.h"

namespace swapd {

namespace {

constexpr auto kind_words = words<ResourceKind>({{"socket", ResourceKind::socket},
                                                 {"pipe", ResourceKind::pipe},
                                                 {"fifo", ResourceKind::fifo},
                                                 {"sysv-msg", ResourceKind::sysv_msg},
                                                 {"sysv-sem", ResourceKind::sysv_sem},
                                                 {"posix-mq", ResourceKind::posix_mq},
                                                 {"flock", ResourceKind::flock},
                                                 {"record-lock", ResourceKind::record_lock},
                                                 {"signal", ResourceKind::signal},
                                                 {"futex", ResourceKind::futex},
                                                 {"eventfd", ResourceKind::eventfd},
                                                 {"pty", ResourceKind::pty},
                                                 {"child-exit", ResourceKind::child_exit},
                                                 {"inotify", ResourceKind::inotify},
                                                 {"kernel-work", ResourceKind::kernel_work},
                                                 {"kernel", ResourceKind::kernel},
                                                 {"unknown", ResourceKind::unknown}});

}  // namespace

std::string_view name(ResourceKind kind) { return kind_words.of(kind); }
std::optional<ResourceKind> kind_named(std::string_view text) { return kind_words.find(text); }

namespace {

std::string device(std::uint64_t dev) {
  std::array<char, 24> out{};
  std::snprintf(out.data(), out.size(), "%02x:%02x", major(dev), minor(dev));
  return out.data();
}

std::string end(std::uint64_t last) { return last == UINT64_MAX ? "eof" : std::to_string(last); }

}  // namespace

std::string text(const Resource& r) {
  std::string kind(name(r.kind));
  const auto id = [&](std::size_t i) { return ":" + std::to_string(r.ids.at(i)); };
  switch (r.kind) {
    case ResourceKind::socket:
    case ResourceKind::eventfd:
      return kind + id(0);
    case ResourceKind::pipe:
    case ResourceKind::fifo:
      return kind + id(0) + (r.ids[1] == 0 ? ":r" : ":w");
    case ResourceKind::sysv_msg:
    case ResourceKind::sysv_sem:
      return kind + id(0) + id(1);
    case ResourceKind::posix_mq:
      return kind + ":" + device(r.ids[0]) + id(1);
    case ResourceKind::flock:
      return kind + ":" + device(r.ids[0]) + id(1) + (r.ids[2] == 0 ? ":shared" : ":exclusive");
    case ResourceKind::record_lock:
      return kind + ":" + device(r.ids[0]) + id(1) + id(2) + ":" + end(r.ids[3]);
    case ResourceKind::signal:
    case ResourceKind::kernel_work:
      return kind + id(0);
    case ResourceKind::futex:
      return is_shared_futex(r) ? kind + ":" + device(r.ids[0]) + id(1) + id(2) : kind + id(0) + id(1);
    case ResourceKind::pty:
      return kind + id(0) + (r.ids[1] == 0 ? ":slave" : ":master");
    case ResourceKind::child_exit:
      return is_any_child(r) ? kind + ":any" + id(2) : kind + id(0);
    case ResourceKind::inotify:
      return kind + id(0) + id(2);
    case ResourceKind::kernel:
      if (is_memory(r)) return kind + ":process" + id(2);
      return kind + ":" + device(r.ids[0]) + (is_fuse_files(r) ? ":fuse" : id(1));
    case ResourceKind::unknown:
      return kind;
  }
  return kind;
}

}  // namespace swapd
