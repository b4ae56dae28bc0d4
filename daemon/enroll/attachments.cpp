#include "enroll/attachments.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <unordered_set>

#include "enroll/attach_messages.h"
#include "enroll/reap_finished.h"
#include "guard/guard_messages.h"
#include "sys/process/pidfd.h"
#include "sys/process/self_process.h"
#include "sys/procfs/ticks.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

constexpr std::size_t max_tasks = 16;
constexpr std::ptrdiff_t max_tasks_of_a_user = 12;  // the others are root's
constexpr int max_attach_rounds = 16;
constexpr auto stop_within = std::chrono::seconds(2);
constexpr auto attached_within = std::chrono::seconds(10);
constexpr auto waited_at_once = std::chrono::milliseconds(50);
constexpr auto go_on_within = std::chrono::seconds(1);

Status request_of(AttachRequest& request, const Attachments::Order& order, const Attachments::Options& options,
                  pid_t tgid, std::uint64_t start_time) {
  if (order.filter.size() > request.program.size()) return Error(E2BIG, "the seccomp filter");
  if (options.state_dir.size() >= request.state_dir.size()) return Error(ENAMETOOLONG, "--state-dir");
  request.allow_no_new_privs = order.allow_no_new_privs;
  request.instructions = static_cast<std::uint16_t>(order.filter.size());
  request.pid = tgid;
  request.start_time = start_time;
  request.flags = sys::filter_flags();
  request.within = Duration(stop_within).count();
  std::ranges::copy(order.filter, request.program.begin());
  request.stale = options.stale.count();
  std::ranges::copy(options.state_dir, request.state_dir.begin());
  return Done{};
}

Result<Fd> start_as_child(const std::string& path) {
  const auto program = OwnProgram::open(path);
  if (!program) return program.error();
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return errno_error("starting swapd-attach");
  Fd ours(pair[0]);
  const Fd theirs(pair[1]);
  if (const auto child = program->start({"swapd-attach"}, {{theirs.get(), attach_fd::socket}}); !child)
    return child.error();
  return ours;
}

// The listener of a process that stands still from now on, until its end of the socket is told to go on. Where swapd
// stops meanwhile, swapd-attach sees the socket close, and is that process's guard.
Result<Fd> await_listener(int socket, const std::stop_token& stop) {
  AttachAnswer answer;
  const Time deadline = std::chrono::steady_clock::now() + attached_within;
  Status readable = Error(ETIMEDOUT, "");
  while (!readable && readable.error().code() == ETIMEDOUT) {
    if (stop.stop_requested()) return Error(ESHUTDOWN, "swapd is stopping");
    if (std::chrono::steady_clock::now() > deadline) return Error(ETIMEDOUT, "swapd-attach does not answer");
    readable = await_readable(socket, waited_at_once);
  }
  if (!readable) return std::move(readable).error();
  auto received = receive_with_fd(socket, &answer, sizeof answer);
  if (!received) return std::move(received).error();
  answer.text.back() = '\0';
  if (answer.error != 0) return Error(answer.error, answer.text.data());
  if (received->size != sizeof answer || !received->fd || !sys::is_listener(received->fd.get()))
    return Error(EPROTO, "swapd-attach gave no listener");
  return std::move(received->fd);
}

}  // namespace

Attachments::Attachments(Engine& engine, Launches& launches, const sys::Procfs& procfs, const sys::Scheduler& scheduler,
                         const Clock& clock, Options options)
    : engine_(engine),
      launches_(launches),
      procfs_(procfs),
      scheduler_(scheduler),
      clock_(clock),
      options_(std::move(options)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Attachments::~Attachments() { stop(); }

Status Attachments::begin(Order order, std::function<void(const Status&)> done) {
  const std::lock_guard lock(mutex_);
  const auto of_user = std::ranges::count_if(tasks_, [&](const auto& other) { return other->order.uid == order.uid; });
  if (tasks_.size() >= max_tasks || (order.uid != 0 && of_user >= max_tasks_of_a_user))
    return Error(EAGAIN, "too many processes are enrolled at once; try again");
  auto task = std::make_unique<Task>();
  task->order = std::move(order);
  task->tell = std::move(done);
  Task& started = *tasks_.emplace_back(std::move(task));
  started.thread = std::jthread([this, &started](const std::stop_token& stop) {
    sys::name_thread("swapd-enroll");
    (void)sys::set_thread_nice(0, -20);
    started.result = enroll(started.order, stop);
    started.done = true;
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  });
  return Done{};
}

// Children that a process starts before the filter is in are found by looking again.
Status Attachments::enroll(const Order& order, const std::stop_token& stop) {
  std::unordered_set<pid_t> seen;
  Status failed = Done{};
  bool found = true;
  for (int round = 0; round < max_attach_rounds && found; ++round) {
    found = false;
    const RosterAnswer there = list_threads(procfs_, scheduler_, {.members = {order.pid}, .descendants = order.tree});
    if (there.threads.empty() && round == 0)
      return Error(ENOENT, "process " + std::to_string(order.pid) + " has ended");
    for (const RosterAnswer::Entry& e : there.threads) {
      if (stop.stop_requested()) return Error(ESHUTDOWN, "swapd is stopping");
      if (!seen.insert(e.tgid).second) continue;
      found = true;
      Status one = enroll_one(order, e.tgid, e.process_start, stop);
      if (one || (one.error().gone() && e.tgid != order.pid)) continue;
      // Born with the filter that its ancestor has from us; where children are found by scans, swapd has not heard of
      // it yet.
      if (one.error().code() == EBUSY && e.tgid != order.pid && e.process_start >= attached_at(order.pid)) continue;
      if (e.tgid == order.pid) return one;
      if (failed && !order.lenient)
        failed = Error(one.error().code() == EINVAL ? EPERM : one.error().code(),
                       "not all were enrolled: " + one.error().context());
    }
  }
  return failed;
}

// In ticks since boot; 0: it was launched, and all that it has made has the filter.
std::uint64_t Attachments::attached_at(pid_t tgid) {
  const std::lock_guard lock(mutex_);
  const auto known = attached_.find(tgid);
  return known == attached_.end() ? 0 : known->second;
}

Status Attachments::enroll_one(const Order& order, pid_t tgid, std::uint64_t start_time, const std::stop_token& stop) {
  if (Status may = order.may(tgid); !may) return may;
  // A child of a managed process has its filter, unless it was made before that was in.
  Status again = Error(ENOENT, "");
  bool without_io = false;
  if (procfs_.has_seccomp_filters(tgid))
    engine_.call([&](Engine& e) {
      without_io = order.io && e.membership().listeners().contains(tgid) && !e.membership().listeners().has_io(tgid);
      if (!order.io || e.membership().listeners().has_io(tgid))
        again = e.membership().manage_again(tgid, order.class_name);
    });
  if (without_io)
    return Error(EBUSY, "process " + std::to_string(tgid) +
                            " runs under a filter without I/O calls, and gets no other: "
                            "start it with `swapctl run --class " +
                            order.class_name + "`");
  return again ? again : attach(order, tgid, start_time, stop);
}

Status Attachments::attach(const Order& order, pid_t tgid, std::uint64_t start_time, const std::stop_token& stop) {
  AttachRequest request;
  if (Status fits = request_of(request, order, options_, tgid, start_time); !fits) return fits;
  const auto self = sys::open_pidfd(::getpid());
  if (!self) return self.error();
  const auto socket = options_.socket.empty() ? start_as_child(options_.program) : start_as_unit(options_.socket);
  if (!socket) return socket.error();
  Status done = send_with_fd(socket->get(), &request, sizeof request, self->get());
  auto listener = done ? await_listener(socket->get(), stop) : Result<Fd>(done.error());
  if (listener) {
    done = receive(order, tgid, std::move(listener).value());
    // Without a receiver it goes on all the same, and swapd-attach keeps the listener.
    const GuardMessage somebody_receives{.kind = GuardMessage::Kind::done};
    if (done && send_message(socket->get(), somebody_receives)) (void)await_readable(socket->get(), go_on_within);
  } else {
    done = std::move(listener).error();
  }
  return done;
}

Status Attachments::receive(const Order& order, pid_t tgid, Fd listener) {
  {
    const std::lock_guard lock(mutex_);
    if (attached_.size() >= max_listeners) attached_.clear();
    attached_[tgid] = sys::ticks_since_boot();
  }
  const RosterAnswer there = list_threads(procfs_, scheduler_, {.members = {tgid}});
  return launches_.receive({.listener = std::move(listener), .launch = tgid, .io = order.io},
                           [&](Engine& e, std::shared_ptr<observe::Receiver> receiver) {
                             e.membership().add_listener(std::move(receiver), tgid, order.class_name, order.io,
                                                         clock_.now());
                             (void)e.membership().enroll_threads(there.threads, order.class_name);
                           });
}

void Attachments::reap() {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  std::list<std::unique_ptr<Task>> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = take_done(tasks_);
  }
  for (const auto& task : ended) task->tell(task->result);
}

void Attachments::stop() {
  std::list<std::unique_ptr<Task>> tasks;
  {
    const std::lock_guard lock(mutex_);
    for (auto& task : tasks_) task->thread.request_stop();
    tasks.swap(tasks_);
  }
}

}  // namespace swapd::daemon
