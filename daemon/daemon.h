// A running swapd: all stages, in the order in which each needs those before it. Whatever ends it, also a start that
// fails half-way, its destructor shuts it down in one order: see ~Daemon(). Control thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bus/message_bus.h"
#include "bus/server.h"
#include "config.h"
#include "control/confidence_file.h"
#include "control/conflicts.h"
#include "control/daemon_backend.h"
#include "control/metrics_file.h"
#include "control_loop.h"
#include "engine/engine.h"
#include "enroll/attachments.h"
#include "enroll/auto_enroller.h"
#include "enroll/launches.h"
#include "enroll/oci_agent.h"
#include "enroll/own_listeners.h"
#include "enroll/restore_members.h"
#include "guard/fd_store.h"
#include "guard/guard.h"
#include "guard/guard_watch.h"
#include "kernel.h"
#include "options.h"
#include "reexec.h"
#include "shaping/auto_limit_controller.h"
#include "shaping/classes.h"
#include "shaping/shaper.h"
#include "sys/bpf/bpf_tracer.h"
#include "sys/netlink/sock_diag.h"
#include "sys/sched/groups.h"
#include "sys/sched/io_groups.h"

namespace swapd::daemon {

class Daemon {
 public:
  struct Inputs {
    const Options& options;
    const LoadedPolicy& loaded;
    const CommandLine& command;
    Guard& guard;
    FdStore& store;
  };
  // Call before the first thread: these signals are the event loop's alone.
  static void block_signals();
  // Checks and locks the state directory and chooses the observer. An error's text is the whole line.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> open(const Inputs& inputs);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon();

  // The engine runs, earlier members are back, and clients are answered. An error's text is the whole line.
  [[nodiscard]] Status start();
  // Until a signal, the end of the process that it is for, or a restart.
  enum class End : std::uint8_t { stopped, reexec };
  [[nodiscard]] End run();

 private:
  struct Observing {
    std::string name;    // bpf, seccomp
    std::string reason;  // why it was chosen
    std::vector<MissingPiece> missing;
  };
  // Settled before the first stage is made.
  struct Prepared {
    Inputs in;
    Fd lock;  // of the state directory
    Observing observing;
    std::vector<std::string> warnings;
  };
  struct Surfaces {
    const sys::Procfs procfs;
    sys::SockDiag diag;
    const sys::LinuxScheduler scheduler;
    const sys::LinuxGroups groups;
    sys::LinuxIoGroups bfq_groups{sys::LinuxIoGroups::By::bfq}, iocost_groups{sys::LinuxIoGroups::By::iocost};
    const SteadyClock clock;
    observe::Resolver resolver{procfs, diag};
    [[nodiscard]] Kernel kernel() const { return {procfs, scheduler, groups, clock}; }
  };
  // Files for the next swapd. A dry run writes none.
  struct StateFiles {
    std::optional<MembersFile> members;
    std::optional<ConfidenceFile> confidences;
    void write();
  };
  // The ways in for clients.
  struct Interfaces {
    DaemonBackend backend;
    bus::Server server;
    bus::MessageBus message_bus;
    std::optional<MetricsFile> metrics;
    OciAgent containers;
    Interfaces(Daemon& daemon, const DaemonBackend::Parts& parts, DaemonBackend::About about);
  };
  // Processes whose end matters.
  struct Others {
    std::optional<GuardWatch> guard;
    Fd companion;  // the process that this swapd is for
  };

  Daemon(Prepared prepared, std::unique_ptr<sys::BpfTracer> tracer);  // null: seccomp
  [[nodiscard]] const Options& options() const { return prepared_.in.options; }
  [[nodiscard]] const policy::Policy& policy() const { return prepared_.in.loaded.policy; }
  // Empty: nothing is kept.
  [[nodiscard]] std::string changed_state_dir() const {
    return options().dry_run ? std::string() : options().state_dir;
  }
  [[nodiscard]] Engine::Options engine_config();
  [[nodiscard]] Status listen_for_signals();
  void restore();
  [[nodiscard]] DaemonBackend::About about();
  [[nodiscard]] Status answer_clients();
  void begin_enrolling();
  [[nodiscard]] Status write_metrics();
  [[nodiscard]] Status listen();
  [[nodiscard]] Status follow_companion();
  [[nodiscard]] Status restart();

  Prepared prepared_;
  ControlLoop loop_;
  Surfaces surfaces_;
  Shaper shaper_;
  Classes classes_;
  Engine engine_;
  OwnListeners own_listeners_;
  Launches launches_;
  Attachments attachments_;
  AutoLimitController auto_limits_;
  StateFiles files_;
  std::optional<AutoEnroller> auto_enroller_;
  std::optional<ConflictMonitor> conflicts_;
  std::optional<Interfaces> interfaces_;
  Others others_;
};

}  // namespace swapd::daemon
