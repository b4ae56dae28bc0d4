#include "control/metrics_file.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/fd.h"
#include "bus/metrics.h"

namespace swapd::daemon {
namespace {

constexpr std::chrono::seconds written_every{15};
constexpr mode_t for_everybody = 0644;  // the exporter is another user's

}  // namespace

MetricsFile::~MetricsFile() {
  if (timer_.running()) (void)::unlink(path_.c_str());  // else nothing was written
}

Status MetricsFile::begin() {
  if (Status written = write(); !written) return written;
  return timer_.repeat(written_every);
}

Status MetricsFile::write() {
  // Not *.prom: the collector would read the half of it.
  const std::string draft = path_ + ".new";
  const std::string text = bus::metrics_text(backend_.status(), backend_.classes());
  const Fd fd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, for_everybody));
  if (!fd) return errno_error("writing " + draft);
  (void)::fchmod(fd.get(), for_everybody);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return errno_error("writing " + draft);
  if (::rename(draft.c_str(), path_.c_str()) != 0) return errno_error("replacing " + path_);
  return Done{};
}

void MetricsFile::write_again() {
  const Status written = write();
  if (!written && !std::exchange(failed_, true)) spdlog::warn("metrics: {}; it is tried again", written.error().text());
  if (written) failed_ = false;
}

}  // namespace swapd::daemon
