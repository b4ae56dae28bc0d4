#include "sys/bpf/exec_events.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "sys/bpf/bpf_ring.h"
#include "sys/bpf/programs/execs_layout.h"
#include "sys/bpf/skeleton.h"
#include "sys/netlink/proc_events.h"
#include "sys/procfs/procfs.h"
#include "sys/procfs/ticks.h"
//
#include "execs.skel.h"  // uses the layout

namespace swapd::sys {
namespace {

std::string text(const char* bytes, std::size_t most) { return {bytes, ::strnlen(bytes, most)}; }

ExecEvent event_of(const execs_record& raw) {
  ExecEvent event{.pid = static_cast<pid_t>(raw.tgid),
                  .start_time = raw.start_boottime / (1'000'000'000 / ticks_per_second),
                  .uid = raw.uid,
                  .comm = text(raw.comm, sizeof raw.comm),
                  .path = text(raw.path, sizeof raw.path),
                  .cmdline = {raw.args, std::min<std::size_t>(raw.args_size, sizeof raw.args)}};
  while (!event.cmdline.empty() && event.cmdline.back() == '\0') event.cmdline.pop_back();
  std::ranges::replace(event.cmdline, '\0', ' ');
  return event;
}

constexpr std::array<std::string_view, 1> on_program{"on_program"}, on_rename{"on_rename"}, on_move{"on_move"};
constexpr std::array<BpfPiece, 3> exec_pieces{on_program, on_rename, on_move};

Result<Skeleton<execs>> load_execs(const Facts& changes, const ProbedKernel& learnt,
                                   std::span<const Refusal> refusals) {
  const auto prepare = [&](execs& programs) -> Status {
    tell_namespace(*programs.rodata, learnt);
    bpf_program__set_autoload(programs.progs.on_rename, changes.comm);
    bpf_program__set_autoload(programs.progs.on_move, changes.cgroup);
    return Done{};
  };
  return load_skeleton<execs>("the BPF program that sees programs start", prepare, refusals);
}

BpfExecEvents::Piece attach_piece(bpf_program* program, bpf_link*& link, std::span<const Refusal> refusals) {
  for (const Refusal& refusal : refusals)
    if (refusal.programs.front() == bpf_program__name(program)) return {false, refusal_of(refusal.error)};
  if (!bpf_program__autoload(program)) return {};  // not asked for
  const FirstWarning warning;
  link = bpf_program__attach(program);
  return {link != nullptr, link != nullptr ? "" : refusal_of(FirstWarning::error(errno, "attaching"))};
}

class Programs final : public ExecEvents {
 public:
  static Result<BpfExecEvents> open(const Facts& changes) {
    if (Status allowed = check_bpf_privilege(); !allowed) return std::move(allowed).error();
    const auto learnt = learn_kernel();
    if (!learnt) return learnt.error();
    std::vector<Refusal> refusals;
    auto loaded = load_in_pieces(
        exec_pieces, refusals, [&](std::span<const Refusal> without) { return load_execs(changes, *learnt, without); });
    if (!loaded) return std::move(loaded).error();
    auto programs = std::make_unique<Programs>();
    programs->programs_ = std::move(loaded).value();
    execs& all = *programs->programs_;
    BpfExecEvents out{.events = nullptr,
                      .starts = attach_piece(all.progs.on_program, all.links.on_program, refusals),
                      .comm = attach_piece(all.progs.on_rename, all.links.on_rename, refusals),
                      .cgroup = attach_piece(all.progs.on_move, all.links.on_move, refusals)};
    if (!out.starts.told && !out.comm.told && !out.cgroup.told) return Error(ENOTSUP, out.starts.refused);
    auto ring = BpfRing::map(programs->fd(), bpf_map__max_entries(all.maps.ring));
    if (!ring) return std::move(ring).error();
    programs->ring_ = std::move(ring).value();
    out.events = std::move(programs);
    return out;
  }

  [[nodiscard]] int fd() const override { return bpf_map__fd(programs_->maps.ring); }

  [[nodiscard]] Result<Batch> read(std::size_t most) override {
    Batch out;
    execs_record raw{};
    while (out.started.size() + out.changed.size() < most && ring_.next(&raw, sizeof raw)) {
      if (raw.what == execs_changed)
        out.changed.push_back(static_cast<pid_t>(raw.tgid));
      else
        out.started.push_back(event_of(raw));
    }
    const std::uint64_t now = std::atomic_ref(programs_->bss->lost).load();
    out.lost = std::exchange(lost_, now) != now;
    return out;
  }

 private:
  Skeleton<execs> programs_;
  BpfRing ring_;
  std::uint64_t lost_ = 0;
};

class Connector final : public ExecEvents {
 public:
  explicit Connector(std::unique_ptr<ProcEvents> events) : events_(std::move(events)) {}

  static Result<std::unique_ptr<ExecEvents>> open(const ProcEvents::Wanted& wanted) {
    auto events = ProcEvents::open(wanted);
    if (!events) return std::move(events).error();
    return std::unique_ptr<ExecEvents>(std::make_unique<Connector>(std::move(events).value()));
  }

  [[nodiscard]] int fd() const override { return events_->fd(); }

  [[nodiscard]] Result<Batch> read(std::size_t most) override {
    std::array<ProcEvent, 64> some{};
    Batch out;
    for (std::size_t looked = 0; looked < most;) {
      const auto read = events_->read(some.data(), std::min(some.size(), most - looked));
      if (!read && read.error().code() == ENOBUFS) {
        out.lost = true;
        break;
      }
      if (!read) return read.error();
      if (*read == 0) break;
      looked += *read;
      for (const ProcEvent& event : std::span(some).first(*read)) {
        if (event.what == ProcEvent::What::exec)
          look_at(event.tgid, out.started);
        else if (event.what == ProcEvent::What::renamed || event.what == ProcEvent::What::other_user)
          out.changed.push_back(event.tgid);
      }
    }
    return out;
  }

 private:
  void look_at(pid_t pid, std::vector<ExecEvent>& out) const {
    const auto id = procfs_.thread_id(pid);
    const auto uid = procfs_.real_uid(pid);
    if (id && uid)
      out.push_back({.pid = pid, .start_time = id->start_time, .uid = *uid, .comm = procfs_.comm(pid).value_or("")});
  }

  std::unique_ptr<ProcEvents> events_;
  Procfs procfs_;
};

}  // namespace

Result<BpfExecEvents> exec_events_from_bpf(const Facts& changes) { return Programs::open(changes); }

Result<std::unique_ptr<ExecEvents>> exec_events_from_connector(const Facts& changes) {
  return Connector::open({.exec = true, .renamed = changes.comm, .other_user = changes.uid});
}

Result<std::unique_ptr<ExecEvents>> changes_from_connector(const Facts& changes) {
  return Connector::open({.renamed = changes.comm, .other_user = changes.uid});
}

}  // namespace swapd::sys
