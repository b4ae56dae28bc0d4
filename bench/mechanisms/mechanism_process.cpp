// child-exit: the client makes a child for each iteration, which computes and exits, and waits for it in wait4.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mechanisms/mechanism.h"
#include "sys/sched/scheduler.h"

namespace swapd::bench {

namespace {

class ChildExit final : public Mechanism {
 public:
  bool has_server() const override { return false; }
  Status create(Place&) override { return Done{}; }
  Status attach_server(const Peer&) override { return Error(ENOSYS, "child-exit has no server"); }
  Status serve(const Computation&) override { return Error(ENOSYS, "child-exit has no server"); }

  // Everything but the client runs at nice 0: the client's own attributes get reset-on-fork (sched(7)), so that the
  // child has never had them.
  Status attach_client(const Peer& peer) override {
    peer_ = peer;
    const sys::LinuxScheduler scheduler;
    auto own = scheduler.get(0);
    if (!own) return own.error();
    own->reset_on_fork = true;
    return scheduler.set(0, *own);
  }
  Status request(const Computation& compute) override {
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) return errno_error("fork");
    if (child_ == 0) ::_exit(run_child(parent, compute));
    // From the start: the child itself would first have to win the CPU.
    if (peer_.child_attr) return sys::LinuxScheduler().set(child_, *peer_.child_attr);
    return Done{};
  }
  Status await() override {
    int status = 0;
    if (::wait4(child_, &status, 0, nullptr) != child_) return errno_error("wait4");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return Error(ECHILD, "the child failed");
    return Done{};
  }

 private:
  int run_child(pid_t parent, const Computation& compute) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) return 1;
    if (peer_.child_own_session) ::setsid();
    if (peer_.child_by_hand && peer_.child_own_session && !peer_.child_attr->realtime()) {
      const Fd group(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
      const std::string nice = std::to_string(peer_.child_attr->nice);
      if (group && ::write(group.get(), nice.data(), nice.size()) < 0) return 1;
    }
    compute();
    return 0;
  }

  Peer peer_;
  pid_t child_ = -1;
};

}  // namespace

std::unique_ptr<Mechanism> make_process_mechanism(std::string_view name) {
  return name == "child-exit" ? std::make_unique<ChildExit>() : nullptr;
}

}  // namespace swapd::bench
