#include "guard/guard_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/ignore_gone.h"
#include "guard/guard_frozen.h"
#include "guard/guard_handover.h"
#include "guard/guard_messages.h"
#include "guard/guard_respawn.h"
#include "guard/guard_setup.h"
#include "guard/held_listeners.h"
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

short polled(int listener) {
  pollfd entry{listener, POLLIN | POLLOUT, 0};
  return ::poll(&entry, 1, 0) > 0 ? entry.revents : short{0};
}

class GuardLoop {
 public:
  explicit GuardLoop(GuardTask task)
      : held_(task.slots),
        delayed_(task.delayed),
        frozen_(task.frozen),
        stale_(task.stale),
        handover_(std::move(task.state_dir)),
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
    } else if (fd == handover_.door()) {
      let_in();
    } else if (fd == handover_.caller()) {
      serve();
    } else if (HeldListener* held = held_.find(fd); held == nullptr) {
      return;  // let go since the set was read
    } else if ((event.events & EPOLLIN) != 0) {
      answer(fd, *held);
    } else if ((event.events & EPOLLHUP) != 0) {  // the last program on it has ended; EPOLLERR alone says nothing
      let_go(fd);
    }
  }

  // Others have the listener open as well: to close our number alone would leave it in the set.
  void let_go(int fd) {
    if (!held_.remove(fd)) return;
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
        for (const int fd : held_.fds()) let_go(fd);
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
    else if (!held_.has_slot(received.message.slot))
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
    handover_.open_door(::getpid());
    HeldListener& held = held_.add(fd, slot, launch);
    held.ours = alone_;
    held.taken = clock_.now();
    return 0;
  }

  // What swapd delays goes on at its time where the listener is ours to answer. When the next one is due: Time::max():
  // none.
  Time serve_delayed() {
    Time next = Time::max();
    bool any_of_ours = false;
    held_.for_each([&](int, const HeldListener& held) { any_of_ours = any_of_ours || held.ours; });
    if (!any_of_ours) return next;
    held_.for_each([](int, HeldListener& held) { held.delayed = false; });
    const Time now = clock_.now();
    for (DelayedCall& call : delayed_) {
      std::uint64_t id = call.id.load(std::memory_order_acquire);
      HeldListener* held = id == 0 ? nullptr : held_.of(call);
      if (held == nullptr || !held->ours) continue;
      const Time due = std::min(Time(Duration(call.due.load(std::memory_order_relaxed))), held->taken + longest_delay);
      if (due <= now) {
        ignore_gone(sys::answer_continue(held_.fd_of(*held), id));
        call.id.compare_exchange_strong(id, 0);  // swapd, where it lives, frees the place itself
      } else {
        held->delayed = true;
        next = std::min(next, due);
      }
    }
    std::vector<int> done;
    held_.for_each([&](int fd, const HeldListener& held) {
      if (held.leaving && !held.delayed) done.push_back(fd);
    });
    for (const int fd : done) let_go(fd);
    return next;
  }

  // swapd is gone. What it sent last is still on its way; then every listener is ours to answer.
  void take_over() {
    if (alone_) return;  // both its end and that of its socket tell
    ::epoll_ctl(epoll_number, EPOLL_CTL_DEL, swapd_number, nullptr);
    alone_ = true;
    if (!socket_closed_) take_messages();
    held_.for_each([this](int fd, HeldListener& held) { take(fd, held); });
    thaw_all();
    if (handover_.has_door() && !add(handover_.door(), EPOLLIN)) handover_.shut_door();
    respawn_.swapd_ended(clock_.now());
  }

  void thaw_all() {
    thawed_ = clock_.now();
    frozen_.thaw_all();
  }

  void let_in() {
    Fd caller = handover_.accept();
    if (caller && add(caller.get(), EPOLLIN)) handover_.begin(std::move(caller), held_.fds());
  }

  // The next swapd receives, and does not know of what this one's delayed.
  void serve() {
    const int fd = handover_.serve(held_);
    HeldListener* held = held_.find(fd);
    if (held == nullptr) return;
    held->leaving = true;
    listen(fd, 0);
    (void)serve_delayed();
  }

  [[nodiscard]] bool may_leave() const {
    return held_.empty() && !respawn_.waits() && !frozen_.are_left() &&
           (alone_ || (socket_closed_ && !respawn_.is_wanted()));
  }

  [[noreturn]] void leave() {
    handover_.shut_door();
    ::_exit(0);
  }

  // From now on its calls are ours to answer, and what swapd has left of them.
  void take(int fd, HeldListener& held) {
    held.ours = true;
    held.taken = clock_.now();
    listen(fd, EPOLLIN);
    answer_left(fd, *held.slot, held.last_known());
  }

  static void listen(int fd, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    ::epoll_ctl(epoll_number, EPOLL_CTL_MOD, fd, &event);
  }

  // Polled readable: the kernel counts what comes in, and a call that has been withdrawn gives ENOENT. A swapd that is
  // back, or the next one, may take it before us, and RECV, which cannot be told not to block, would: so an alarm ends
  // it.
  void answer(int fd, HeldListener& held) {
    const bool others = !alone_ || handover_.has_begun();
    if (others && (polled(fd) & POLLIN) == 0) return;
    if (others) alarm_every(receive_at_most);
    const auto notification = sys::receive(fd);
    if (others) alarm_every({});
    if (!notification) return;
    ignore_gone(sys::answer_continue(fd, notification->id));
    // One that swapd received before this, and nothing else tells of.
    if (notification->id - held.last_known() > 1)
      answer_between(fd, notification->id - max_unknown, notification->id - 1);
    held.highest = notification->id;
  }

  // Is there one that swapd leaves unanswered, or has it come back?
  void look() {
    looked_ = clock_.now();
    frozen_.thaw_overdue(looked_ - stale_);
    polled_.clear();
    held_.for_each([this](int fd, HeldListener& held) {
      polled_.push_back({fd, POLLIN | POLLOUT, 0});
      held.delayed = held.overdue = false;
    });
    ::poll(polled_.data(), polled_.size(), 0);
    for (const DelayedCall& call : delayed_) {
      HeldListener* held = call.id.load(std::memory_order_acquire) == 0 ? nullptr : held_.of(call);
      if (held == nullptr) continue;
      held->delayed = true;
      if (Time(Duration(call.due.load(std::memory_order_relaxed))) < looked_) held->overdue = true;
    }
    for (const pollfd& polled : polled_) {
      const int fd = polled.fd;
      HeldListener& held = *held_.find(fd);
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

  HeldListeners held_;
  std::span<DelayedCall> delayed_;
  GuardFrozen frozen_;
  Duration stale_;
  SteadyClock clock_;
  GuardHandover handover_;
  GuardRespawn respawn_;
  bool goes_ = false;    // swapd has said that it ends
  bool single_ = false;  // of one listener, which it had before anybody else (GuardTask::first)
  Time looked_{}, thawed_{};
  std::vector<pollfd> polled_;
  bool alone_ = false;  // swapd has ended
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
