#include "control/journal_entries.h"

#include <string>

#include "actuate/actuator.h"
#include "log/log.h"

namespace swapd::daemon {

void log_donation(const Note& note, const sys::Procfs& procfs) {
  const std::string provider = procfs.comm(note.thread.tid).value_or("?");
  const std::string requester = procfs.comm(note.other.tid).value_or("?");
  const auto called = [](const std::string& comm, ThreadId id) { return comm + "[" + std::to_string(id.tid) + "]"; };
  const std::string lent = std::string(swapd::name(note.attr.policy)) + " " +
                           std::to_string(note.attr.realtime() ? note.attr.rt_priority : note.attr.nice);
  const bool limited = note.limited != actuate::Ineffective::none;  // as a nice value it is in force
  const bool begun = note.type == Note::Type::donation_begun || limited;
  std::string reason(actuate::name(note.reason));
  if (!begun && note.reason == actuate::Ineffective::none) reason = "the kernel refused";
  const std::uint64_t more = note.journalled.value_or(0);
  std::string message = called(requester, note.other) + (begun ? " lends " + lent + " to " : " cannot help ") +
                        called(provider, note.thread) + ", whom it waits for at " + text(note.resource);
  if (!begun) message += ": " + reason;
  if (limited) message += "; no real-time priority: " + std::string(actuate::name(note.limited));
  if (more > 0) message += " (and " + std::to_string(more) + " times more since this was last told)";
  log_entry(begun ? message_id::donation : message_id::ineffective, message,
            {{"SWAPD_PID", std::to_string(note.tgid)},
             {"SWAPD_TID", std::to_string(note.thread.tid)},
             {"SWAPD_COMM", provider},
             {"SWAPD_REQUESTER_PID", std::to_string(note.other_tgid)},
             {"SWAPD_REQUESTER_TID", std::to_string(note.other.tid)},
             {"SWAPD_REQUESTER_COMM", requester},
             {"SWAPD_RESOURCE", text(note.resource)},
             {"SWAPD_LENT", lent},
             {"SWAPD_REASON", begun ? "none" : reason},
             {"SWAPD_MORE", std::to_string(more)}});
}

Status DenialLog::heard(std::string_view action, pid_t pid, const bus::Caller& caller, Status outcome) {
  const bool not_final = caller.may_ask() && caller.missing();
  if (!outcome && !not_final) tell(action, pid, caller, outcome.error());
  return outcome;
}

void DenialLog::tell(std::string_view action, pid_t pid, const bus::Caller& caller, const Error& why) {
  const bool is_refusal = why.code() == EACCES || why.code() == EPERM || why.code() == EDQUOT;
  if (!is_refusal || caller.uid() == 0) return;
  // By user: one line for a user who asks for a thousand processes.
  const std::hash<std::string_view> hash;
  const auto silent = told_.tell({{0, caller.uid()}, {}, static_cast<std::uint32_t>(hash(action))}, clock_.now());
  if (!silent) return;
  const std::string user = std::to_string(caller.uid());
  log_entry(
      message_id::refused,
      "refused user " + user + " to " + std::string(action) + " process " + std::to_string(pid) + ": " + why.context(),
      {{"SWAPD_PID", std::to_string(pid)},
       {"SWAPD_UID", user},
       {"SWAPD_ACTION", std::string(action)},
       {"SWAPD_REASON", why.context()},
       {"SWAPD_MORE", std::to_string(*silent)}});
}

}  // namespace swapd::daemon
