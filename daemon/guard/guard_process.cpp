#include "guard/guard_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ignore_gone.h"
#include "guard/guard_frozen.h"
#include "guard/guard_messages.h"
#include "guard/guard_respawn.h"
#include "guard/guard_setup.h"
#include "guard/guard_socket.h"
#include "guard/pending_notifications.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

constexpr int socket_number = guard_fd::socket;
constexpr int swapd_number = guard_fd::swapd;
constexpr int epoll_number = 5;

constexpr std::chrono::microseconds receive_at_most = std::chrono::milliseconds(20);
// A call that swapd delayed goes on at its time, or this long after swapd has gone.
constexpr Duration longest_delay = std::chrono::milliseconds(900);

// A listener, and what the guard knows of it.
struct Held {
  ListenerSlot* slot = nullptr;
  pid_t launch = 0;
  std::uint64_t highest = 0;  // the last id that the guard has answered itself
  // Since when something has waited while these did not change.
  Time waiting_since{};  // Time{}: nothing does
  std::uint64_t open_id = 0;
  std::uint64_t last_id = 0;
  bool ours = false;                      // the guard answers
  Time taken{};                           // since when
  bool delayed = false, overdue = false;  // as of the last look: swapd delays calls of it, and past their time
  bool leaving = false;                   // another swapd receives; only what was delayed is left to be answered
};

short polled(int listener) {
  pollfd entry{listener, POLLIN | POLLOUT, 0};
  return ::poll(&entry, 1, 0) > 0 ? entry.revents : short{0};
}

class GuardLoop {
 public:
  explicit GuardLoop(GuardTask task)
      : slots_(task.slots),
        delayed_(task.delayed),
        frozen_(task.frozen),
        listener_of_(task.slots.size(), -1),
        stale_(task.stale),
        state_dir_(std::move(task.state_dir)),
        respawn_(task.respawn, task.restart_count, clock_.now()) {}

  // first: a listener that it holds from the begin, and for whom; below 0: none.
  [[noreturn]] void run(int first, pid_t launch) {
    if (::epoll_create1(EPOLL_CLOEXEC) != epoll_number) ::_exit(1);
    if (!add(socket_number, EPOLLIN) || !add(swapd_number, EPOLLIN)) ::_exit(1);
    if (first >= 0 && keep(first, 0, launch) != 0) ::_exit(1);
    single_ = first >= 0;
    std::array<epoll_event, 64> ready;
    const Duration pause = std::max<Duration>(stale_ / 4, std::chrono::milliseconds(1));
    for (;;) {
      const bool looks = !alone_ && !held_.empty();
      const Time due = serve_delayed();  // which may let the last one go
      if (may_leave()) leave();
      Duration timeout = looks || respawn_.waits() || frozen_.are_left() ? pause : Duration::max();
      if (due != Time::max()) timeout = std::min(timeout, std::max(due - clock_.now(), Duration::zero()));
      const int n = ::epoll_wait(epoll_number, ready.data(), static_cast<int>(ready.size()),
                                 timeout == Duration::max()
                                     ? -1
                                     : static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(timeout).count()));
      for (int i = 0; i < n; ++i) handle(ready.at(static_cast<std::size_t>(i)));
      if (looks && !alone_ && clock_.now() - looked_ >= pause) look();
      respawn_.start_if_due(clock_.now());
      if (frozen_.are_left() && clock_.now() - thawed_ >= pause) thaw_all();
      if (may_leave()) leave();
    }
  }

 private:
  static bool add(int fd, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    return ::epoll_ctl(epoll_number, EPOLL_CTL_ADD, fd, &event) == 0;
  }

  void handle(const epoll_event& event) {
    const int fd = event.data.fd;
    if (fd == socket_number) {
      take_messages();
    } else if (fd == swapd_number) {
      take_over();
    } else if (fd == door_.number()) {
      let_in();
    } else if (fd == caller_.get()) {
      serve();
    } else if (const auto held = held_.find(fd); held == held_.end()) {
      return;  // let go since the set was read
    } else if ((event.events & EPOLLIN) != 0) {
      answer(fd, held->second);
    } else if ((event.events & EPOLLHUP) != 0) {  // the last program on it has ended; EPOLLERR alone says nothing
      let_go(fd);
    }
  }

  // Others have the listener open as well: to close our number alone would leave it in the set.
  void let_go(int fd) {
    const auto held = held_.find(fd);
    if (held == held_.end()) return;
    listener_of_.at(number_of(held->second)) = -1;
    held_.erase(held);
    ::epoll_ctl(epoll_number, EPOLL_CTL_DEL, fd, nullptr);
    ::close(fd);
  }

  void take_messages() {
    for (;;) {
      auto received = receive_message(socket_number);
      if (received) {
        obey(std::move(received).value());
        continue;
      }
      if (received.error().code() == EPROTO) continue;  // a stranger's word; the next may be well
      if (received.error().code() == EAGAIN || received.error().code() == EINTR) return;
      ::epoll_ctl(epoll_number, EPOLL_CTL_DEL, socket_number, nullptr);
      socket_closed_ = true;
      // It may have become another swapd, which has a guard of its own; not so of one listener that nobody else holds.
      if (goes_ || single_) take_over();
      return;
    }
  }

  void obey(GuardReceived received) {
    switch (received.message.kind) {
      case GuardMessage::Kind::bye:
        goes_ = true;
        respawn_.give_up();
        return;
      case GuardMessage::Kind::done:  // to a guard of one listener: it has another holder, and somebody who answers
        if (!single_) return;
        while (!held_.empty()) let_go(held_.begin()->first);
        leave();
      default:
        return hold(std::move(received));
    }
  }

  void hold(GuardReceived received) {
    GuardMessage answer;
    answer.kind = GuardMessage::Kind::answer;
    answer.sequence = received.message.sequence;
    const int fd = received.fd.get();
    if (received.message.kind != GuardMessage::Kind::hold)
      answer.error = EINVAL;
    else if (received.truncated)
      answer.error = EMFILE;
    else if (received.message.slot >= slots_.size())
      answer.error = EINVAL;
    else if (fd < 0)
      answer.error = EBADF;
    else
      answer.error = keep(fd, received.message.slot, received.message.pid);
    if (answer.error == 0) (void)received.fd.release();
    if (!alone_) (void)send_message(socket_number, answer);
  }

  // 0, or an errno.
  int keep(int fd, std::size_t slot, pid_t launch) {
    if (!add(fd, alone_ ? EPOLLIN : 0U)) return errno;  // EPOLLHUP needs no asking
    if (!door_.is_open() && !state_dir_.empty()) door_.open(guard_path(state_dir_, ::getpid()));
    held_[fd] = {.slot = &slots_[slot], .launch = launch, .ours = alone_, .taken = clock_.now()};
    listener_of_.at(slot) = fd;
    return 0;
  }

  std::size_t number_of(const Held& held) const { return static_cast<std::size_t>(held.slot - slots_.data()); }

  // Null: it is no listener of ours.
  Held* held_of(const DelayedCall& call) {
    const std::uint32_t slot = call.slot.load(std::memory_order_relaxed);
    const int fd = slot < listener_of_.size() ? listener_of_[slot] : -1;
    const auto found = held_.find(fd);
    return found == held_.end() ? nullptr : &found->second;
  }

  // What swapd delays goes on at its time where the listener is ours to answer. When the next one is due: Time::max():
  // none.
  Time serve_delayed() {
    Time next = Time::max();
    if (std::none_of(held_.begin(), held_.end(), [](const auto& h) { return h.second.ours; })) return next;
    for (auto& [fd, held] : held_) held.delayed = false;
    const Time now = clock_.now();
    for (DelayedCall& call : delayed_) {
      std::uint64_t id = call.id.load(std::memory_order_acquire);
      Held* held = id == 0 ? nullptr : held_of(call);
      if (held == nullptr || !held->ours) continue;
      const Time due = std::min(Time(Duration(call.due.load(std::memory_order_relaxed))), held->taken + longest_delay);
      if (due <= now) {
        ignore_gone(sys::answer_continue(listener_of_[number_of(*held)], id));
        call.id.compare_exchange_strong(id, 0);  // swapd, where it lives, frees the place itself
      } else {
        held->delayed = true;
        next = std::min(next, due);
      }
    }
    std::vector<int> done;
    for (const auto& [fd, held] : held_)
      if (held.leaving && !held.delayed) done.push_back(fd);
    for (const int fd : done) let_go(fd);
    return next;
  }

  // swapd is gone. What it sent last is still on its way; then every listener is ours to answer.
  void take_over() {
    if (alone_) return;  // both its end and that of its socket tell
    ::epoll_ctl(epoll_number, EPOLL_CTL_DEL, swapd_number, nullptr);
    alone_ = true;
    if (!socket_closed_) take_messages();
    for (auto& [fd, held] : held_) take(fd, held);
    thaw_all();
    if (door_.is_open() && !add(door_.number(), EPOLLIN)) door_.shut();
    respawn_.swapd_ended(clock_.now());
  }

  void thaw_all() {
    thawed_ = clock_.now();
    frozen_.thaw_all();
  }

  void let_in() {
    Fd caller = door_.accept();
    if (!caller || !add(caller.get(), EPOLLIN)) return;
    caller_ = std::move(caller);
    asked_.clear();
    for (const auto& [fd, held] : held_) asked_.push_back(fd);
  }

  void serve() {
    const auto received = receive_message(caller_.get());
    if (!received) {
      if (received.error().code() != EAGAIN && received.error().code() != EINTR) caller_.reset();
      return;
    }
    const std::uint32_t which = received->message.sequence;
    if (received->message.kind == GuardMessage::Kind::done && which < asked_.size())
      return leave_to_it(asked_.at(which));
    if (received->message.kind != GuardMessage::Kind::take) return;
    GuardMessage answer;
    answer.sequence = which;
    answer.kind = which < asked_.size() ? GuardMessage::Kind::give : GuardMessage::Kind::end;
    int fd = -1;
    if (answer.kind == GuardMessage::Kind::give) {
      const auto held = held_.find(asked_.at(which));
      if (held == held_.end()) {  // its programs have ended meanwhile
        answer.error = ENOENT;
      } else {
        fd = held->first;
        answer.pid = held->second.launch;
        answer.last_id = known(held->second);
        shared_ = true;
      }
    }
    if (!send_message(caller_.get(), answer, fd)) caller_.reset();
  }

  // The next swapd receives, and does not know of what this one's delayed.
  void leave_to_it(int fd) {
    const auto held = held_.find(fd);
    if (held == held_.end()) return;
    held->second.leaving = true;
    listen(fd, 0);
    (void)serve_delayed();
  }

  [[nodiscard]] bool may_leave() const {
    return held_.empty() && !respawn_.waits() && !frozen_.are_left() &&
           (alone_ || (socket_closed_ && !respawn_.is_wanted()));
  }

  [[noreturn]] void leave() {
    door_.shut();
    ::_exit(0);
  }

  // The last id that anybody is known to have received. Ids of one listener are near one another.
  static std::uint64_t known(const Held& held) {
    const std::uint64_t open = held.slot->open_id.load(std::memory_order_acquire);
    return std::max({open, held.slot->last_id.load(std::memory_order_acquire), held.highest});
  }

  // From now on its calls are ours to answer, and what swapd has left of them.
  void take(int fd, Held& held) {
    held.ours = true;
    held.taken = clock_.now();
    listen(fd, EPOLLIN);
    answer_left(fd, *held.slot, known(held));
  }

  static void listen(int fd, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    ::epoll_ctl(epoll_number, EPOLL_CTL_MOD, fd, &event);
  }

  // Polled readable: the kernel counts what comes in, and a call that has been withdrawn gives ENOENT. A swapd that is
  // back, or the next one, may take it before us, and RECV, which cannot be told not to block, would: so an alarm ends
  // it.
  void answer(int fd, Held& held) {
    const bool others = !alone_ || shared_;
    if (others && (polled(fd) & POLLIN) == 0) return;
    if (others) alarm_every(receive_at_most);
    const auto notification = sys::receive(fd);
    if (others) alarm_every({});
    if (!notification) return;
    ignore_gone(sys::answer_continue(fd, notification->id));
    // One that swapd received before this, and nothing else tells of.
    if (notification->id - known(held) > 1) answer_between(fd, notification->id - max_unknown, notification->id - 1);
    held.highest = notification->id;
  }

  // Is there one that swapd leaves unanswered, or has it come back?
  void look() {
    looked_ = clock_.now();
    frozen_.thaw_overdue(looked_ - stale_);
    polled_.clear();
    for (auto& [fd, held] : held_) {
      polled_.push_back({fd, POLLIN | POLLOUT, 0});
      held.delayed = held.overdue = false;
    }
    ::poll(polled_.data(), polled_.size(), 0);
    for (const DelayedCall& call : delayed_) {
      Held* held = call.id.load(std::memory_order_acquire) == 0 ? nullptr : held_of(call);
      if (held == nullptr) continue;
      held->delayed = true;
      if (Time(Duration(call.due.load(std::memory_order_relaxed))) < looked_) held->overdue = true;
    }
    for (const pollfd& polled : polled_) {
      const int fd = polled.fd;
      Held& held = held_.at(fd);
      const std::uint64_t open = held.slot->open_id.load(std::memory_order_acquire);
      const std::uint64_t last = held.slot->last_id.load(std::memory_order_acquire);
      const bool goes_on = held.last_id != last || held.open_id != open;
      held.last_id = last;
      held.open_id = open;
      if (goes_on && std::exchange(held.ours, false)) listen(fd, 0);
      // A delayed call is received and unanswered as it should be.
      const bool waits = (polled.revents & POLLIN) != 0 || open != 0 || held.overdue ||
                         ((polled.revents & POLLOUT) != 0 && !held.delayed);
      if (goes_on || !waits) {
        held.waiting_since = {};
      } else if (held.waiting_since == Time{}) {
        held.waiting_since = looked_;
      } else if (looked_ - held.waiting_since >= stale_) {
        held.waiting_since = {};
        take(fd, held);
      }
    }
  }

  std::span<ListenerSlot> slots_;
  std::span<DelayedCall> delayed_;
  GuardFrozen frozen_;
  std::vector<int> listener_of_;  // by slot; -1: none
  Duration stale_;
  std::string state_dir_;
  SteadyClock clock_;
  GuardRespawn respawn_;
  bool goes_ = false;    // swapd has said that it ends
  bool single_ = false;  // of one listener, which it had before anybody else (GuardTask::first)
  GuardDoor door_;
  Fd caller_;               // the next swapd
  std::vector<int> asked_;  // what it is given
  Time looked_{}, thawed_{};
  std::unordered_map<int, Held> held_;  // by descriptor
  std::vector<pollfd> polled_;
  bool shared_ = false;  // the next swapd has some of the listeners, too
  bool alone_ = false;   // swapd has ended
  bool socket_closed_ = false;
};

}  // namespace

void run_guard(Fd socket, Fd swapd, GuardTask task) {
  const int first = keep_only(std::move(socket), std::move(swapd), std::move(task.first), epoll_number);
  stand_alone("swapd-guard");
  settle_guard();
  const pid_t launch = task.launch;
  GuardLoop(std::move(task)).run(first, launch);
}

}  // namespace swapd::daemon
