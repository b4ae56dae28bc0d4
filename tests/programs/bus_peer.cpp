// A service and its clients on a message bus.
//
//   bus_peer serve ADDRESS NAME MS [FLAG]   has NAME; a call of Work uses MS of CPU time, and goes on until FLAG
//   exists,
//                                           which it takes away
//   bus_peer call ADDRESS NAME [TIMES]      calls Work, and prints how long it took: a line each, in ms
//   bus_peer idle ADDRESS                   is connected, and waits for what never comes
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

namespace {

constexpr const char* path = "/org/swapd/test";
constexpr const char* interface = "org.swapd.Test";

struct Work {
  long ms = 0;
  std::string flag;
};

double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

int work(sd_bus_message* call, void* data, sd_bus_error* /*error*/) {
  const auto* order = static_cast<const Work*>(data);
  const double end = cpu_ms() + static_cast<double>(order->ms);
  const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  volatile unsigned long done = 0;
  while (cpu_ms() < end || (!order->flag.empty() && ::access(order->flag.c_str(), F_OK) != 0 &&
                            std::chrono::steady_clock::now() < latest))
    for (int i = 0; i < 10000; ++i) done = done + 1;
  if (!order->flag.empty()) ::unlink(order->flag.c_str());
  return sd_bus_reply_method_return(call, "u", static_cast<unsigned>(::getpid()));
}

constexpr sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Work", "", "u", work, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

sd_bus* connect(const char* address) {
  sd_bus* bus = nullptr;
  if (sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, address) < 0 || sd_bus_set_bus_client(bus, 1) < 0 ||
      sd_bus_start(bus) < 0)
    return nullptr;
  return bus;
}

int serve(sd_bus* bus, const char* name, Work order) {
  if (sd_bus_add_object_vtable(bus, nullptr, path, interface, vtable, &order) < 0) return 1;
  if (name != nullptr && sd_bus_request_name(bus, name, 0) < 0) return 1;
  for (;;)
    if (const int r = sd_bus_process(bus, nullptr); r < 0 || (r == 0 && sd_bus_wait(bus, UINT64_MAX) < 0)) return 1;
}

int call(sd_bus* bus, const char* name, long times) {
  for (long i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    sd_bus_message* answer = nullptr;
    if (sd_bus_call_method(bus, name, path, interface, "Work", nullptr, &answer, "") < 0) return 1;
    sd_bus_message_unref(answer);
    std::printf("%.2f\n", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::unique_ptr<sd_bus, decltype(&sd_bus_flush_close_unref)> kept(connect(argv[2]), sd_bus_flush_close_unref);
  sd_bus* bus = kept.get();
  if (bus == nullptr) return 1;
  const std::string what = argv[1];
  if (what == "idle") return serve(bus, nullptr, {});
  if (argc < 4) return 2;
  if (what == "call") return call(bus, argv[3], argc > 4 ? std::atol(argv[4]) : 1);
  if (what != "serve" || argc < 5) return 2;
  return serve(bus, argv[3], {.ms = std::atol(argv[4]), .flag = argc > 5 ? argv[5] : ""});
}
