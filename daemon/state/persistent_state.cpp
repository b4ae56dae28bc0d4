#include "state/persistent_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file_lock.h"
#include "state/state_file.h"
#include "sys/procfs/ticks.h"

namespace swapd::daemon {
namespace {

using nlohmann::json;
using replay::Fields;
using replay::Mistake;

constexpr int members_version = 1, lessons_version = 1;
constexpr std::size_t max_members = 100'000;

}  // namespace

std::string members_file(const std::string& state_dir) { return state_dir + "/members"; }

std::string lessons_file(const std::string& state_dir) { return state_dir + "/confidences"; }

Status check_state_dir(const std::string& state_dir) {
  std::error_code failed;
  const mode_t mask = ::umask(0077);
  std::filesystem::create_directories(state_dir, failed);
  ::umask(mask);
  if (failed) return Error(failed.value(), "state directory " + state_dir + ": " + failed.message());
  struct stat found {};
  if (::lstat(state_dir.c_str(), &found) != 0 || !S_ISDIR(found.st_mode))
    return Error(ENOTDIR, "state directory " + state_dir + ": not a directory");
  if (found.st_uid != ::geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Error(EPERM, "state directory " + state_dir + ": others may write to it");
  return Done{};
}

Result<Fd> lock_state(const std::string& state_dir, Duration within) {
  const std::string path = state_dir + "/lock";
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return errno_error(path);
  const Status locked = lock_file(lock.get(), within);
  if (locked) return lock;
  if (locked.error().code() != EBUSY) return Error(locked.error().code(), path);
  return Error(EBUSY, "another swapd uses the state directory " + state_dir + "; stop it, or give another --state-dir");
}

Status write_members(const std::string& state_dir, const std::string& boot_id,
                     const std::vector<model::Membership>& members) {
  json list = json::array();
  for (const model::Membership& m : members)
    list.push_back({{"pid", m.pid},
                    {"start_time", m.start_time},
                    {"class", m.class_name},
                    {"managed", m.managed},
                    {"launch", m.launch},
                    {"io", m.io}});
  return write_state(members_file(state_dir), {{"version", members_version},
                                               {"boot_id", boot_id},
                                               {"time", sys::ticks_since_boot()},
                                               {"members", std::move(list)}});
}

Result<LeftMembers> read_members(const std::string& state_dir, const std::string& boot_id) {
  LeftMembers left;
  const Status read =
      read_state(members_file(state_dir), members_version, boot_id, [&](Fields& file, Mistake& mistake) {
        left.written = file.number<std::uint64_t>("time");
        left.members = file.list("members", [&](const json& one) {
          Fields m(one, mistake);
          return model::Membership{.pid = m.number<pid_t>("pid"),
                                   .start_time = m.number<std::uint64_t>("start_time"),
                                   .class_name = m.text("class"),
                                   .managed = m.flag("managed"),
                                   .launch = m.number<pid_t>("launch"),
                                   .io = m.has("io") && m.flag("io")};
        });
        if (left.members.size() > max_members) mistake.note("too long");
      });
  if (!read) return read.error();
  return left;
}

Status write_lessons(const std::string& state_dir, const std::string& boot_id,
                     const std::vector<model::SavedConfidence>& lessons) {
  json list = json::array();
  for (const model::SavedConfidence& one : lessons)
    list.push_back({{"tid", one.provider.tid},
                    {"start_time", one.provider.start_time},
                    {"kind", name(one.resource.kind)},
                    {"ids", one.resource.ids},
                    {"lead", one.lead}});
  return write_state(lessons_file(state_dir),
                     {{"version", lessons_version}, {"boot_id", boot_id}, {"learnt", std::move(list)}});
}

Result<std::vector<model::SavedConfidence>> read_lessons(const std::string& state_dir, const std::string& boot_id) {
  std::vector<model::SavedConfidence> out;
  const Status read =
      read_state(lessons_file(state_dir), lessons_version, boot_id, [&](Fields& file, Mistake& mistake) {
        const auto lessons = file.list("learnt", [&](const json& one) -> std::optional<model::SavedConfidence> {
          Fields lesson(one, mistake);
          const auto kind = kind_named(lesson.text("kind"));
          if (!kind) return std::nullopt;  // of a later version
          model::SavedConfidence learnt{
              .provider = {lesson.number<pid_t>("tid"), lesson.number<std::uint64_t>("start_time")},
              .resource = {*kind, {}},
              .lead = lesson.number<int>("lead")};
          const auto ids = lesson.numbers<std::uint64_t>("ids");
          if (ids.size() == learnt.resource.ids.size())
            std::copy(ids.begin(), ids.end(), learnt.resource.ids.begin());
          else
            mistake.note("'ids' is not a list of " + std::to_string(learnt.resource.ids.size()));
          return learnt;
        });
        if (lessons.size() > max_lessons) mistake.note("too long");
        for (const auto& lesson : lessons)
          if (lesson) out.push_back(*lesson);
      });
  if (!read) return read.error();
  return out;
}

}  // namespace swapd::daemon
