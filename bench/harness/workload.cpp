#include "harness/workload.h"

#include <array>

#include "harness/plot.h"

namespace swapd::bench {

namespace {

constexpr std::array<Workload, 21> workloads = {{
    {"client-server", run_client_server, client_server_role, plot_bars},
    {"multi-server", run_multi_server, multi_server_role, plot_iterations},
    {"cascade", run_cascade, cascade_role, plot_bars},
    {"overhead", run_overhead, overhead_role, nullptr},
    {"pipeline", run_pipeline, pipeline_role, plot_bars},
    {"latency", run_latency, latency_role, nullptr},
    {"scale", run_scale, scale_role, nullptr},
    {"apps", run_apps, apps_role, nullptr},
    {"chat", run_chat, chat_role, nullptr},
    {"soak", run_soak, chat_role, plot_soak},
    {"thin-client", run_thin_client, nullptr, nullptr},
    {"cosched", run_cosched, nullptr, nullptr},
    {"response", run_response, response_role, nullptr},
    {"thrash", run_thrash, nullptr, nullptr},
    {"build", run_build, nullptr, nullptr},
    {"shape-accuracy", run_shape_accuracy, shape_role, nullptr},
    {"shape-overhead", run_shape_overhead, shape_role, nullptr},
    {"shape-rivals", run_shape_rivals, shape_role, nullptr},
    {"tap-disk", run_tap_disk, nullptr, plot_tap_share},
    {"tap-network", run_tap_network, nullptr, plot_tap_share},
    {"tap-stream", run_tap_stream, nullptr, plot_tap_stream},
}};

}  // namespace

const Workload* find_workload(std::string_view name) {
  for (const Workload& workload : workloads) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

}  // namespace swapd::bench
