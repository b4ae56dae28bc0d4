#include "guard/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <new>
#include <utility>

#include "guard/guard_messages.h"
#include "guard/guard_process.h"
#include "sys/process/pidfd.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {
namespace {

constexpr std::chrono::seconds answer_within{1}, unit_starts_within{5};
constexpr std::size_t memory_size = sizeof(GuardMemory);

// The answer to `sequence`; older ones belong to calls that gave up waiting.
Status await_answer(int socket, std::uint32_t sequence) {
  for (;;) {
    const auto answer = await_message(socket, answer_within);
    if (!answer) return answer.error();
    if (answer->message.kind != GuardMessage::Kind::answer || answer->message.sequence != sequence) continue;
    if (answer->message.error != 0) return Error(answer->message.error, "the guard could not take the listener");
    return Done{};
  }
}

bool is_gone(int code) { return code == EPIPE || code == ECONNRESET; }

// It has closed its socket, so it is about to end, or has. False: it takes longer.
bool ends_soon(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return ::poll(&entry, 1, 1000) == 1;
}

}  // namespace

std::string find_guard() { return find_own_program("swapd-guard"); }

Guard::Guard(Program program, Process process, Memory memory)
    : program_(std::move(program)),
      process_(std::move(process)),
      memory_(std::move(memory)),
      mutex_(std::make_unique<std::mutex>()) {
  free_.reserve(max_listeners);
  for (std::size_t i = max_listeners; i-- > 0;) free_.push_back(static_cast<std::uint16_t>(i));
}

void Guard::Unmap::operator()(GuardMemory* memory) const { ::munmap(memory, memory_size); }

Result<Guard> Guard::start(GuardOptions options) {
  Fd memory(::memfd_create("swapd-guard", MFD_CLOEXEC));
  if (!memory || ::ftruncate(memory.get(), memory_size) != 0) return errno_error("starting the guard");
  void* mapped = ::mmap(nullptr, memory_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) return errno_error("starting the guard");
  Memory shared(new (mapped) GuardMemory{});
  auto file = OwnProgram::open(options.program);
  if (!file) return std::move(file).error();
  Program program{.options = std::move(options), .file = std::move(file).value(), .memory = std::move(memory)};
  auto process = spawn(program);
  if (!process) return std::move(process).error();
  return Guard(std::move(program), std::move(process).value(), std::move(shared));
}

Result<Guard::Process> Guard::spawn(const Program& program) {
  const auto self = sys::open_pidfd(::getpid());
  if (!self) return Error(self.error()).in("starting the guard");
  if (program.options.socket.empty()) return spawn_child(program, self->get());
  auto unit = spawn_unit(program, self->get());
  if (unit) return unit;
  auto child = spawn_child(program, self->get());
  if (child) child->note = "the guard is no unit of its own, but a child of swapd: " + unit.error().text();
  return child;
}

Result<Guard::Process> Guard::spawn_unit(const Program& program, int self) {
  auto socket = start_as_unit(program.options.socket);
  if (!socket) return std::move(socket).error().in("--guard-socket");
  GuardStart start{.stale = program.options.stale.count()};
  if (program.options.state_dir.size() >= start.state_dir.size()) return Error(ENAMETOOLONG, "the state directory");
  std::ranges::copy(program.options.state_dir, start.state_dir.begin());
  for (const int fd : {self, program.memory.get()})
    if (Status sent = send_with_fd(socket->get(), &start, sizeof start, fd); !sent) return std::move(sent).error();
  auto answer = await_message(socket->get(), unit_starts_within);
  if (!answer) return std::move(answer).error().in("--guard-socket " + program.options.socket);
  if (answer->message.error != 0)
    return Error(answer->message.error, "its unit may not use " + program.options.state_dir);
  const auto pid = sys::pid_of_pidfd(answer->fd.get());
  if (answer->message.kind != GuardMessage::Kind::answer || !pid)
    return Error(EPROTO, "no guard answers at " + program.options.socket);
  return Process{.pid = *pid, .pidfd = std::move(answer->fd), .socket = std::move(socket).value(), .note = {}};
}

Result<Guard::Process> Guard::spawn_child(const Program& program, int self) {
  int pair[2] = {-1, -1};
  // SEQPACKET: messages keep their bounds, and the end of one side shows on the other.
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return errno_error("starting the guard");
  Process process{.pid = -1, .pidfd = {}, .socket = Fd(pair[0]), .note = {}};
  const Fd theirs(pair[1]);
  const GuardOptions& options = program.options;
  std::vector<std::string> arguments{"swapd-guard", std::to_string(options.stale.count()), options.state_dir,
                                     std::to_string(options.restart_count)};
  arguments.insert(arguments.end(), options.respawn.begin(), options.respawn.end());
  auto started = program.file.start(
      std::move(arguments),
      {{theirs.get(), guard_fd::socket}, {self, guard_fd::swapd}, {program.memory.get(), guard_fd::memory}});
  if (!started) return std::move(started).error();
  process.pid = *started;
  auto pidfd = sys::open_pidfd(process.pid);
  if (!pidfd) {  // it ends at once: its socket is closed
    process.socket.reset();
    ::waitpid(process.pid, nullptr, 0);
    return std::move(pidfd).error().in("starting the guard");
  }
  process.pidfd = std::move(pidfd).value();
  return process;
}

Status Guard::hand_over(std::uint16_t slot, Kept& kept) {
  GuardMessage message;
  message.slot = slot;
  message.pid = kept.launch;
  message.sequence = ++sequence_;
  if (Status sent = send_message(process_.socket.get(), message, kept.listener.get()); !sent) return sent;
  Status held = await_answer(process_.socket.get(), message.sequence);
  kept.held = held.ok();
  return held;
}

// One that cannot be handed over does not keep the others from it.
Status Guard::hand_over_the_rest() {
  Status result = Done{};
  for (auto& [slot, kept] : kept_) {
    if (kept.held) continue;
    Status held = hand_over(slot, kept);
    if (held) continue;
    const int code = held.error().code();
    result = std::move(held);
    if (is_gone(code) || code == ETIMEDOUT) break;  // so would the others be
  }
  return result;
}

Result<ListenerSlot*> Guard::hold(int listener, pid_t launch) {
  const std::lock_guard lock(*mutex_);
  if (free_.empty()) return Error(EMFILE, "the guard holds " + std::to_string(max_listeners) + " listeners");
  const std::uint16_t number = free_.back();
  ListenerSlot* slot = &memory_->slots[number];
  slot->open_id = 0;
  slot->last_id = 0;
  Kept kept{.listener = Fd(::fcntl(listener, F_DUPFD_CLOEXEC, 3)), .launch = launch};
  if (!kept.listener) return errno_error("keeping a duplicate of the listener");
  Status held = hand_over(number, kept);
  if (!held && is_gone(held.error().code()) && ends_soon(process_.pidfd.get())) {
    if (Status replaced = replace(); !replaced) return std::move(replaced).error();
    held = hand_over(number, kept);
  }
  if (!held) return std::move(held).error();
  free_.pop_back();
  kept_.emplace(number, std::move(kept));
  return slot;
}

void Guard::let_go(const ListenerSlot* slot) {
  const std::lock_guard lock(*mutex_);
  const auto number = static_cast<std::uint16_t>(slot - memory_->slots.data());
  kept_.erase(number);
  free_.push_back(number);
}

Status Guard::look_after() {
  const std::lock_guard lock(*mutex_);
  return sys::has_exited(process_.pidfd.get()) ? replace() : hand_over_the_rest();
}

// Of a guard that has ended. Until there is another, nobody has its place, and its number is not ours to kill.
Status Guard::replace() {
  siginfo_t ignored{};
  ::waitid(P_PIDFD, static_cast<id_t>(process_.pidfd.get()), &ignored, WEXITED | WNOHANG);
  auto process = spawn(program_);
  if (!process) return std::move(process).error();
  if (!program_.options.state_dir.empty()) ::unlink(guard_path(program_.options.state_dir, process_.pid).c_str());
  process_ = std::move(process).value();
  for (auto& [slot, kept] : kept_) kept.held = false;
  return hand_over_the_rest();
}

Result<Fd> Guard::watch() const {
  const std::lock_guard lock(*mutex_);
  Fd copy(::fcntl(process_.pidfd.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return errno_error("watching the guard");
  return copy;
}

pid_t Guard::pid() const {
  const std::lock_guard lock(*mutex_);
  return process_.pid;
}

std::string Guard::note() const {
  const std::lock_guard lock(*mutex_);
  return process_.note;
}

void Guard::say_goodbye() const {
  const std::lock_guard lock(*mutex_);
  GuardMessage bye;
  bye.kind = GuardMessage::Kind::bye;
  (void)send_message(process_.socket.get(), bye);
}

}  // namespace swapd::daemon
