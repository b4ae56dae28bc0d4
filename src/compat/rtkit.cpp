#include "compat/rtkit.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "sys/process/pidfd.h"
#include "sys/procfs/procfs_read.h"

namespace swapd::compat {
namespace {

constexpr const char* bus_name = "org.freedesktop.RealtimeKit1";
constexpr const char* object = "/org/freedesktop/RealtimeKit1";
constexpr std::uint64_t answer_within_us = 5'000'000;
constexpr std::size_t max_questions = 64;

RealtimeKit& kit_of(void* data) { return *static_cast<RealtimeKit*>(data); }

// From /proc, as prlimit(2) of another user's process needs CAP_SYS_RESOURCE. Nothing: it has no bound.
std::optional<Duration> longest_realtime(pid_t pid) {
  const auto text = sys::read_all(("/proc/" + std::to_string(pid) + "/limits").c_str());
  return text ? realtime_bound(*text) : std::nullopt;
}

Credentials sender_of(sd_bus_message* call) {
  sd_bus_creds* creds = nullptr;
  (void)sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID | SD_BUS_CREDS_PID, &creds);
  return Credentials(creds);
}

bool granted(sd_bus_message* answer) {
  int authorized = 0;
  int challenge = 0;
  return sd_bus_message_is_method_error(answer, nullptr) == 0 &&
         sd_bus_message_enter_container(answer, 'r', "bba{ss}") > 0 &&
         sd_bus_message_read(answer, "bb", &authorized, &challenge) > 0 && authorized != 0;
}

}  // namespace

const sd_bus_vtable RealtimeKit::vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("MakeThreadRealtime", "tu", "", on_make, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("MakeThreadRealtimeWithPID", "ttu", "", on_make, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("MakeThreadHighPriority", "ti", "", on_make, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("MakeThreadHighPriorityWithPID", "tti", "", on_make, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("ResetKnown", "", "", on_reset, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("ResetAll", "", "", on_reset, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Exit", "", "", on_exit, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_PROPERTY("RTTimeUSecMax", "x", limit, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("MaxRealtimePriority", "i", limit, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("MinNiceLevel", "i", limit, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_VTABLE_END,
};

Status RealtimeKit::serve() {
  sd_bus_slot* slot = nullptr;
  int r = sd_bus_add_object_vtable(bus_, &slot, object, bus_name, vtable, this);
  object_.reset(slot);
  if (r >= 0) r = sd_bus_request_name(bus_, bus_name, 0);
  return r < 0 ? Status(Error(-r, bus_name)) : Done{};
}

int RealtimeKit::limit(sd_bus*, const char*, const char*, const char* name, sd_bus_message* reply, void* data,
                       sd_bus_error*) {
  const RealtimeLimits& limits = kit_of(data).limits_;
  if (std::string_view(name) == "RTTimeUSecMax")
    return sd_bus_message_append(
        reply, "x",
        static_cast<std::int64_t>(std::chrono::duration_cast<std::chrono::microseconds>(limits.longest).count()));
  const bool nice = std::string_view(name) == "MinNiceLevel";
  return sd_bus_message_append(reply, "i", static_cast<std::int32_t>(nice ? limits.min_nice : limits.max_priority));
}

// Those that live.
std::size_t RealtimeKit::threads_of(uid_t user) {
  const auto known = threads_.find(user);
  if (known == threads_.end()) return 0;
  std::erase_if(known->second, [&](const ThreadId& thread) {
    const auto now = procfs_.thread_id(thread.tid);
    return !now || *now != thread;
  });
  return known->second.size();
}

Result<RealtimeKit::Question> RealtimeKit::question_of(sd_bus_message* call) {
  const std::string_view member = sd_bus_message_get_member(call);
  const Credentials sender = sender_of(call);
  uid_t user = 0;
  pid_t pid = 0;
  if (!sender || sd_bus_creds_get_euid(sender.get(), &user) < 0 || sd_bus_creds_get_pid(sender.get(), &pid) < 0)
    return Error(EACCES, "the bus does not say who asks");
  std::uint64_t process = static_cast<std::uint64_t>(pid);
  std::uint64_t tid = 0;
  std::int32_t value = 0;  // priority or nice value
  if (member.ends_with("WithPID") && sd_bus_message_read(call, "t", &process) < 0) return Error(EINVAL, "no process");
  const bool realtime = member.starts_with("MakeThreadRealtime");
  if (sd_bus_message_read(call, realtime ? "tu" : "ti", &tid, &value) < 0) return Error(EINVAL, "no thread");
  if (process == 0 || process > INT32_MAX || tid > INT32_MAX) return Error(ESRCH, "there is no such process");
  pid = static_cast<pid_t>(process);
  const pid_t wanted = tid == 0 ? pid : static_cast<pid_t>(tid);
  const auto thread = procfs_.thread_id(wanted);
  const auto owner = procfs_.uid(pid);
  if (!thread || !owner) return Error(ESRCH, "there is no such process or thread");
  Question question{.self = this, .pid = pid, .thread = *thread};
  const auto of = procfs_.tgid(wanted);
  std::size_t others = threads_of(user);
  if (const auto known = threads_.find(user); known != threads_.end() && known->second.contains(*thread)) --others;
  question.wish = {.caller = user,
                   .owner = *owner,
                   .thread_of_process = of && *of == pid,
                   .longest = limits_.longest,
                   .priority = realtime ? std::optional<int>(value) : std::nullopt,
                   .nice = value,
                   .threads_of_user = others};
  if (std::string why = refusal(question.wish, limits_); !why.empty()) return Error(EACCES, std::move(why));
  return question;
}

int RealtimeKit::on_make(sd_bus_message* call, void* data, sd_bus_error* error) {
  RealtimeKit& kit = kit_of(data);
  auto question = kit.question_of(call);
  if (!question) {
    spdlog::info("refused: {}", question.error().context());
    return denied(error, question.error().context());
  }
  const uid_t user = question->wish.caller;
  if (user != 0 && !kit.quota_.take(user, std::chrono::steady_clock::now()))
    return denied(error, "this user asks too often");
  question->call.reset(sd_bus_message_ref(call));
  if (user != 0) return kit.ask_polkit(std::move(*question), error);
  if (const Status given = kit.give(*question); !given) return denied(error, given.error().context());
  return sd_bus_reply_method_return(call, "");
}

int RealtimeKit::ask_polkit(Question question, sd_bus_error* error) {
  const char* sender = sd_bus_message_get_sender(question.call.get());
  if (questions_.size() >= max_questions || sender == nullptr) return denied(error, "too much is asked at once");
  const char* action = question.wish.priority ? "org.freedesktop.RealtimeKit1.acquire-real-time"
                                              : "org.freedesktop.RealtimeKit1.acquire-high-priority";
  sd_bus_message* made = nullptr;
  int r =
      sd_bus_message_new_method_call(bus_, &made, "org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority",
                                     "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
  const Message request(made);
  // A subject, an action, no details, no password, and no name to cancel it by.
  if (r >= 0)
    r = sd_bus_message_append(made, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s", sender, action, 0, 0, "");
  if (r < 0) return r;
  Question& kept = questions_.emplace_back(std::move(question));
  sd_bus_slot* slot = nullptr;
  r = sd_bus_call_async(bus_, &slot, made, on_answer, &kept, answer_within_us);
  kept.answer.reset(slot);
  if (r < 0) questions_.pop_back();
  return r < 0 ? r : 1;
}

int RealtimeKit::on_answer(sd_bus_message* answer, void* data, sd_bus_error*) {
  auto& question = *static_cast<Question*>(data);
  RealtimeKit& kit = *question.self;
  Status given = Error(EACCES, "polkit does not allow it");
  if (granted(answer)) given = kit.give(question);
  if (!given) spdlog::info("refused: {}", given.error().context());
  const int r = given ? sd_bus_reply_method_return(question.call.get(), "")
                      : sd_bus_reply_method_errorf(question.call.get(), SD_BUS_ERROR_ACCESS_DENIED, "%s",
                                                   given.error().context().c_str());
  kit.questions_.remove_if([&](const Question& one) { return &one == &question; });
  return r < 0 ? r : 1;
}

// Its children have nothing of it, as they have not asked. The process's bound is looked at last: PipeWire sets it
// while another of its threads asks already.
Status RealtimeKit::give(const Question& question) {
  const pid_t tid = question.thread.tid;
  auto pidfd = sys::open_pidfd(question.pid);
  if (!pidfd) return std::move(pidfd).error();
  const auto is_it = [&] {
    const auto now = procfs_.thread_id(tid);
    return now && *now == question.thread;
  };
  if (!is_it()) return Error(ESRCH, "the thread has ended");
  RealtimeWish wish = question.wish;
  wish.longest = longest_realtime(question.pid);
  if (std::string why = refusal(wish, limits_); !why.empty()) return Error(EACCES, std::move(why));
  const std::optional<int> priority = question.wish.priority;
  const Status set = priority ? scheduler_.set(tid, {.policy = SchedPolicy::rr,
                                                     .rt_priority = static_cast<std::uint8_t>(*priority),
                                                     .reset_on_fork = true})
                              : scheduler_.set_nice(tid, question.wish.nice);
  if (!set) return set;
  if (!is_it()) {  // it was another one's number by then
    (void)scheduler_.set(tid, {});
    return Error(ESRCH, "the thread has ended");
  }
  threads_[question.wish.caller].insert(question.thread);
  const std::string given = priority ? "rr " + std::to_string(*priority) : "nice " + std::to_string(question.wish.nice);
  spdlog::info("thread {} of process {} (user {}) has {}", tid, question.pid, question.wish.owner, given);
  swapd_.manage_later(std::move(*pidfd), class_name_);
  return Done{};
}

// Threads that have been made real-time by others are none of ours.
int RealtimeKit::on_reset(sd_bus_message* call, void* data, sd_bus_error* error) {
  RealtimeKit& kit = kit_of(data);
  const Credentials sender = sender_of(call);
  uid_t user = 1;
  if (!sender || sd_bus_creds_get_euid(sender.get(), &user) < 0 || user != 0)
    return denied(error, "root alone may do this");
  for (auto& [owner, threads] : kit.threads_) {
    (void)kit.threads_of(owner);
    for (const ThreadId& thread : threads) (void)kit.scheduler_.set(thread.tid, {});
  }
  kit.threads_.clear();
  return sd_bus_reply_method_return(call, "");
}

int RealtimeKit::on_exit(sd_bus_message* call, void* data, sd_bus_error* error) {
  const Credentials sender = sender_of(call);
  uid_t user = 1;
  if (!sender || sd_bus_creds_get_euid(sender.get(), &user) < 0 || user != 0)
    return denied(error, "root alone may do this");
  const int r = sd_bus_reply_method_return(call, "");
  (void)sd_event_exit(kit_of(data).loop_, 0);
  return r;
}

}  // namespace swapd::compat
