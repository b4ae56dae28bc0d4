// The pthread mechanisms within one process: client and server are two of its threads, and what they wait in is not
// shared, so that the kernel knows it by the address space and the address only (futex(2), FUTEX_PRIVATE_FLAG).
//
// Each side is a mechanism of two processes whose objects are those of this process. The server's thread lives as long
// as the process; it is never asked to end.
#include <sys/syscall.h>
#include <unistd.h>

#include <semaphore>
#include <thread>

#include "mechanisms/mechanism.h"
#include "mechanisms/pthread_objects.h"
#include "sys/sched/scheduler.h"

namespace swapd::bench {

namespace {

class Threads final : public Mechanism {
 public:
  Threads(std::string_view between_processes, Status (*make)(SyncObjects&, PthreadKind))
      : between_processes_(between_processes), make_(make), client_(make_mechanism(between_processes)) {}

  bool has_server() const override { return false; }
  int warm_ups() const override { return client_->warm_ups(); }
  Status create(Place&) override { return Done{}; }
  Status attach_server(const Peer&) override { return Error(ENOSYS, "the server is a thread of the client"); }
  Status serve(const Computation&) override { return Error(ENOSYS, "the server is a thread of the client"); }

  Status attach_client(const Peer& peer) override {
    server_->mechanism = make_mechanism(between_processes_);
    server_->peer = peer;
    server_->peer.objects = &server_->objects;
    if (Status made = make_(server_->objects, {}); !made) return made;
    if (Status started = start(peer); !started) return started;
    return client_->attach_client(server_->peer);
  }
  Status request(const Computation& compute) override {
    if (!std::exchange(asked_, true)) {
      server_->compute = compute;
      server_->go.release();
    }
    return Done{};
  }
  Status await() override { return client_->await(); }

 private:
  struct Server {
    std::unique_ptr<Mechanism> mechanism;
    Peer peer;
    SyncObjects objects;
    Computation compute;
    pid_t tid = -1;
    std::binary_semaphore ready{0}, go{0};
    Status attached = Done{};
  };

  // As the child of child-exit: reset-on-fork, so that the thread has never had the client's attributes.
  Status start(const Peer& peer) {
    const sys::LinuxScheduler scheduler;
    auto own = scheduler.get(0);
    if (!own) return own.error();
    own->reset_on_fork = true;
    if (Status set = scheduler.set(0, *own); !set) return set;
    std::thread([server = server_] { live(*server); }).detach();
    server_->ready.acquire();
    if (!server_->attached) return server_->attached;
    if (peer.child_attr) return scheduler.set(server_->tid, *peer.child_attr);
    return Done{};
  }
  // Whoever waits for a server that has failed waits until the harness ends it.
  static void live(Server& server) {
    server.tid = static_cast<pid_t>(::syscall(SYS_gettid));
    server.attached = server.mechanism->attach_server(server.peer);
    const bool good = server.attached.ok();
    server.ready.release();
    if (!good) return;
    server.go.acquire();
    while (server.mechanism->serve(server.compute)) {
    }
  }

  std::string_view between_processes_;
  Status (*make_)(SyncObjects&, PthreadKind);
  std::unique_ptr<Mechanism> client_;
  std::shared_ptr<Server> server_ = std::make_shared<Server>();
  bool asked_ = false;
};

}  // namespace

std::unique_ptr<Mechanism> make_thread_mechanism(std::string_view name) {
  if (name == "mutex-private") return std::make_unique<Threads>("mutex", make_mutexes);
  if (name == "condvar-private") return std::make_unique<Threads>("condvar", make_conditions);
  return nullptr;
}

}  // namespace swapd::bench
