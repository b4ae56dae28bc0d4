// Parsers of procfs text: pure, bounded, tolerant of everything (the text is partly chosen by the target).
//
// An empty answer means that the text is not of the expected form. Source: proc(5), fs/proc/array.c, fs/proc/base.c,
// fs/locks.c lock_get_status(), fs/eventpoll.c ep_show_fdinfo() of Linux.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/procfs/procfs.h"

namespace swapd::sys::parse {

[[nodiscard]] std::optional<ProcStat> stat(std::string_view text);
[[nodiscard]] std::optional<SyscallState> syscall(std::string_view text);
[[nodiscard]] FdNumbers fd_numbers(std::string_view text);
[[nodiscard]] FdInfo fdinfo(std::string_view text);
// "1: FLOCK  ADVISORY  WRITE 7597 fe:00:9977919 0 EOF", with or without "->" before the type.
[[nodiscard]] std::optional<LockLine> lock(std::string_view line);
[[nodiscard]] std::vector<LockLine> locks(std::string_view text);
// "tfd:        3 events:       19 data:                3  pos:0 ino:32ed sdev:f"
[[nodiscard]] std::optional<EpollTarget> epoll_target(std::string_view line);
[[nodiscard]] std::optional<Mapping> mapping(std::string_view line);
[[nodiscard]] std::optional<Procfs::Autogroup> autogroup(std::string_view text);
// The numbers after "KEY:" in a status file.
[[nodiscard]] std::vector<std::int64_t> status_numbers(std::string_view text, std::string_view key);
// The file in the text of an exe link, also where that has been deleted or replaced ("/bin/true (deleted)").
[[nodiscard]] std::string program_file(std::string_view link);
// The hexadecimal number after "CapEff:" in a status file.
[[nodiscard]] std::optional<std::uint64_t> capabilities(std::string_view text);
// From a status file.
[[nodiscard]] std::optional<Interruption> interruption(std::string_view text);
// The path in the line of systemd's own hierarchy ("1:name=systemd:/init.scope"), else of v2's ("0::/init.scope").
[[nodiscard]] std::string unit_cgroup(std::string_view text);
// "ipc:[4026531839]", the text of a link in /proc/PID/ns.
[[nodiscard]] std::optional<std::uint64_t> namespace_inode(std::string_view text);
// Whitespace-separated decimal numbers, until something else comes.
[[nodiscard]] std::vector<pid_t> pids(std::string_view text);

}  // namespace swapd::sys::parse
