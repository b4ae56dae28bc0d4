#include "enroll/launches.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "enroll/reap_finished.h"
#include "observe/seccomp/launch_accept.h"
#include "sys/process/pidfd.h"
#include "sys/process/self_process.h"
#include "sys/seccomp/launcher.h"

namespace swapd::daemon {

namespace {
constexpr auto launch_timeout = std::chrono::seconds(5);
constexpr std::size_t max_launches = 64;
constexpr std::ptrdiff_t max_launches_of_a_user = 48;  // the others are root's
}  // namespace

Launches::Launches(Engine& engine, Guard& guard, const FdStore& store, Shaper& shaper, const Clock& clock,
                   std::function<void(std::string)> log)
    : engine_(engine),
      guard_(guard),
      store_(store),
      shaper_(shaper),
      clock_(clock),
      log_(std::move(log)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Launches::~Launches() { stop(); }

Status Launches::begin(bus::LaunchRequest request) {
  if (const auto pid = sys::pid_of_pidfd(request.pidfd.get()); !pid || *pid != request.pid)
    return Error(EINVAL, "the pidfd is not the launcher's own");
  auto shared = sys::launch::map_shared(request.memory.get());
  if (!shared) return std::move(shared).error();
  auto launch = std::make_unique<Launch>();
  launch->request = std::move(request);
  launch->shared = *shared;
  const std::lock_guard lock(mutex_);
  const auto of_user = std::ranges::count_if(
      launches_, [&](const auto& other) { return other->request.caller.uid() == launch->request.caller.uid(); });
  if (launches_.size() >= max_launches || (launch->request.caller.uid() != 0 && of_user >= max_launches_of_a_user)) {
    sys::launch::unmap_shared(launch->shared);
    return Error(EAGAIN, "too many launches at once; try again");
  }
  Launch& started = *launches_.emplace_back(std::move(launch));
  started.thread = std::jthread([this, &started](const std::stop_token& stop) { run(started, stop); });
  return Done{};
}

void Launches::run(Launch& launch, const std::stop_token& stop) {
  sys::name_thread("swapd-launch");
  (void)sys::set_thread_nice(0, -20);
  auto listener = observe::accept_launch(launch.request.pidfd.get(), launch.shared, launch_timeout, stop);
  Status attached = listener ? attach(launch, std::move(listener).value()) : Status(std::move(listener).error());
  observe::complete_launch(launch.shared, attached.ok());
  // ECANCELED: the launcher does without, and says why itself.
  if (!attached && !attached.error().gone() && attached.error().code() != ECANCELED)
    log_("launch of process " + std::to_string(launch.request.pid) + ": " + attached.error().text());
  sys::launch::unmap_shared(launch.shared);
  launch.done = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

Status Launches::attach(Launch& launch, Fd listener) {
  return receive({.listener = std::move(listener), .launch = launch.request.pid, .io = launch.request.shaped},
                 [&](Engine& e, std::shared_ptr<observe::Receiver> receiver) {
                   e.membership().add_listener(std::move(receiver), launch.request.pid, launch.request.class_name,
                                               launch.request.shaped, clock_.now());
                 });
}

Status Launches::adopt(OrphanListener left) {
  const pid_t launch = left.launch;
  if (receives(left.listener.get())) return Done{};  // a swapd that ended while it took over left it to two guards
  return receive(std::move(left), [launch](Engine& e, std::shared_ptr<observe::Receiver> receiver) {
    e.membership().adopt_listener(std::move(receiver), launch);
  });
}

bool Launches::receives(int listener) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(listening_,
                             [&](const auto& entry) { return sys::same_file(entry->receiver->listener(), listener); });
}

Status Launches::receive(OrphanListener from,
                         const std::function<void(Engine&, std::shared_ptr<observe::Receiver>)>& joins) {
  auto slot = guard_.hold(from.listener.get(), from.launch);
  if (!slot) return std::move(slot).error().in("handing the listener to the guard");
  (*slot)->last_id = from.last_id;
  store_.keep(from.listener.get(), from.launch);
  auto listening = std::make_unique<Listening>();
  listening->slot = *slot;
  const auto ring = [](int fd) {
    const std::uint64_t one = 1;
    (void)!::write(fd, &one, sizeof one);
  };
  observe::Receiver::Callbacks callbacks{.wake = [this, ring] { ring(engine_.wake_fd()); },
                                         .finished =
                                             [this, ring, entry = listening.get()] {
                                               entry->done = true;
                                               ring(wake_.get());
                                             }};
  listening->receiver =
      std::make_shared<observe::Receiver>(std::move(from.listener), listening->slot, std::move(callbacks));
  if (from.io)
    listening->receiver->set_filter(shaper_.admission(listening->receiver->listener(), guard_.number_of(*slot)));
  if (Status started = listening->receiver->start(); !started) {
    listening->receiver->stop();  // it may run, and write
    guard_.let_go(*slot);
    return started;
  }
  engine_.call([&](Engine& e) { joins(e, listening->receiver); });
  const std::lock_guard lock(mutex_);
  listening_.push_back(std::move(listening));
  return Done{};
}

void Launches::reap() {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  std::list<std::unique_ptr<Launch>> ended;
  std::list<std::unique_ptr<Listening>> hung_up;
  {
    const std::lock_guard lock(mutex_);
    ended = take_done(launches_);
    hung_up = take_done(listening_);
  }
  for (const auto& entry : hung_up) {
    const observe::Receiver* gone = entry->receiver.get();
    engine_.call([gone](Engine& e) { e.membership().remove_listener(gone); });
    entry->receiver->stop();
    guard_.let_go(entry->slot);
  }
}

void Launches::stop() {
  std::list<std::unique_ptr<Launch>> launches;
  std::list<std::unique_ptr<Listening>> listening;
  {
    const std::lock_guard lock(mutex_);
    for (auto& launch : launches_) launch->thread.request_stop();
    launches.swap(launches_);
  }
  launches.clear();  // joins
  {
    const std::lock_guard lock(mutex_);
    listening.swap(listening_);
  }
  for (const auto& entry : listening) {
    entry->receiver->stop();  // the engine may have stopped, and keep it
    const observe::Receiver* gone = entry->receiver.get();
    engine_.call([gone](Engine& e) { e.membership().remove_listener(gone); });
  }
}

}  // namespace swapd::daemon
