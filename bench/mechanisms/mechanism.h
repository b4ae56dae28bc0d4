// The ways in which a server's answer reaches its client ([SWAP04 §5.1], and more of the kind).
//
// One class a mechanism, used in three processes: the harness create()s the kernel objects, server and client attach()
// to them. Then, every iteration, the client calls request() and await(), the server serve() with the computation. The
// classes see to it that a client which keeps up waits for one whole computation each iteration: where the kernel
// object would let the client pass without waiting (a lock that it can take again at once) the two hand over.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/sched_attr.h"
#include "harness/shared.h"

namespace swapd::bench {

// What one side is given: descriptors and a word, by the mechanism's own convention.
struct End {
  std::vector<Fd> fds;
  std::string word;
};

struct Place {
  std::string dir;       // for names in the file system
  End client, server;    // the harness closes its copies once both are started
  std::vector<Fd> kept;  // ends that stay with the harness
  Shared* shared = nullptr;
};

// A role's view.
struct Peer {
  std::vector<int> fds;
  std::string word;
  Shared* shared = nullptr;
  SyncObjects* objects = nullptr;  // of this process alone; null: those of the shared memory
  // Where the client makes who computes, a child or a thread: what that one gets at its start (by hand, or
  // --server-nice), and whether in a session of its own.
  std::optional<SchedAttr> child_attr;
  bool child_by_hand = false;
  bool child_own_session = false;
};

using Computation = std::function<void()>;

class Mechanism {
 public:
  Mechanism() = default;
  Mechanism(const Mechanism&) = delete;
  Mechanism& operator=(const Mechanism&) = delete;
  virtual ~Mechanism() = default;  // in the harness: removes what has a name

  [[nodiscard]] virtual bool has_server() const { return true; }
  // Iterations until everything that the client ever waits for has been met.
  [[nodiscard]] virtual int warm_ups() const { return 1; }
  [[nodiscard]] virtual Status create(Place& place) = 0;
  [[nodiscard]] virtual Status attach_client(const Peer& peer) = 0;
  [[nodiscard]] virtual Status attach_server(const Peer& peer) = 0;
  [[nodiscard]] virtual Status serve(const Computation& compute) = 0;
  // compute is for mechanisms without a server: the child or the thread that the client makes runs it.
  [[nodiscard]] virtual Status request(const Computation& compute);
  [[nodiscard]] virtual Status await() = 0;

 protected:
  // Fills in the next answer, and checks that the one received is a later one than the last.
  void stamp(char* answer);
  [[nodiscard]] Status check(const char* answer);

 private:
  std::uint64_t sequence_ = 0;
};

[[nodiscard]] const std::vector<std::string_view>& mechanism_names();
// True where only an observer of wakes (bpf) knows who provides: not one of "all" under the others.
[[nodiscard]] bool needs_wakes(std::string_view name);
// Null for an unknown name.
[[nodiscard]] std::unique_ptr<Mechanism> make_mechanism(std::string_view name);

// By family, for make_mechanism.
[[nodiscard]] std::unique_ptr<Mechanism> make_stream_mechanism(std::string_view name);
[[nodiscard]] std::unique_ptr<Mechanism> make_message_mechanism(std::string_view name);
[[nodiscard]] std::unique_ptr<Mechanism> make_sync_mechanism(std::string_view name);
[[nodiscard]] std::unique_ptr<Mechanism> make_lock_mechanism(std::string_view name);
[[nodiscard]] std::unique_ptr<Mechanism> make_process_mechanism(std::string_view name);
[[nodiscard]] std::unique_ptr<Mechanism> make_futex_mechanism(std::string_view name);
[[nodiscard]] std::unique_ptr<Mechanism> make_thread_mechanism(std::string_view name);

}  // namespace swapd::bench
