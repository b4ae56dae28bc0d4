#include "harness/loads.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace swapd::bench {

namespace {

constexpr int groups = 2, senders = 10, receivers = 10;
constexpr std::size_t message = 100;

double process_cpu_ms() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) / 1e6;
}

struct Channel {
  Fd in, out;
};

void send_all(const std::vector<Channel>& channels, int loops, std::atomic<bool>& broken) {
  const std::array<char, message> data{};
  for (int i = 0; i < loops; ++i) {
    for (const Channel& channel : channels) {
      if (::write(channel.out.get(), data.data(), data.size()) != static_cast<ssize_t>(data.size())) broken = true;
    }
  }
}

void receive_all(const Channel& channel, int loops, std::atomic<bool>& broken) {
  std::array<char, message> data{};
  std::size_t left = message * senders * static_cast<std::size_t>(loops);
  while (left > 0) {
    const ssize_t size = ::read(channel.in.get(), data.data(), std::min(left, data.size()));
    if (size <= 0) {
      broken = true;
      return;
    }
    left -= static_cast<std::size_t>(size);
  }
}

}  // namespace

Status ping_role(Role& role, int round_trips) {
  const int in = role.options().fds.at(0), out = role.options().fds.at(1);
  if (Status go = role.wait_for_go(); !go) return go;
  const auto batches = static_cast<std::uint32_t>(role.options().iterations);
  for (std::uint32_t batch = 0; batch < batches; ++batch) {
    const auto before = std::chrono::steady_clock::now();
    for (int i = 0; i < round_trips; ++i) {
      char byte = 'x';
      if (::write(out, &byte, 1) != 1 || ::read(in, &byte, 1) != 1) return errno_error("ping");
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - before;
    role.note_sample(batch, took.count() / round_trips);
  }
  return role.finish(batches);
}

Status pong_role(Role& role) {
  const int in = role.options().fds.at(0), out = role.options().fds.at(1);
  if (Status go = role.wait_for_go(); !go) return go;
  for (char byte = 0; ::read(in, &byte, 1) == 1 && ::write(out, &byte, 1) == 1;) {
  }
  return Error(EPIPE, "the other side is gone");
}

Status spawn_role(Role& role, int programs) {
  if (Status go = role.wait_for_go(); !go) return go;
  std::string program = "/bin/true";
  std::array<char*, 2> argv{program.data(), nullptr};
  const auto batches = static_cast<std::uint32_t>(role.options().iterations);
  for (std::uint32_t batch = 0; batch < batches; ++batch) {
    const auto before = std::chrono::steady_clock::now();
    for (int i = 0; i < programs; ++i) {
      pid_t pid = -1;
      int status = 0;
      if (const int failed = ::posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environ); failed != 0)
        return Error(failed, "starting " + program);
      if (::waitpid(pid, &status, 0) != pid || status != 0) return Error(ECHILD, program + " failed");
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - before;
    role.note_sample(batch, took.count() / programs);
  }
  return role.finish(batches);
}

Status hack_role(Role& role, int loops) {
  std::vector<std::vector<Channel>> channels(groups);
  for (auto& group : channels) {
    for (int i = 0; i < receivers; ++i) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno_error("socketpair");
      group.push_back({Fd(ends[0]), Fd(ends[1])});
    }
  }
  if (Status go = role.wait_for_go(); !go) return go;
  const double before = process_cpu_ms();
  std::atomic<bool> broken = false;
  {
    std::vector<std::jthread> threads;
    for (auto& group : channels) {
      for (const Channel& channel : group) {
        threads.emplace_back([&, loops] { receive_all(channel, loops, broken); });
      }
      for (int i = 0; i < senders; ++i) {
        threads.emplace_back([&, loops] { send_all(group, loops, broken); });
      }
    }
  }
  if (broken) return Error(EPIPE, "a socket broke");
  role.note_sample(0, process_cpu_ms() - before);
  return role.finish(1);
}

}  // namespace swapd::bench
