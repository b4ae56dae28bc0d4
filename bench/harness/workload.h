// The workloads: a table of what the harness does for each and what its processes do.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/team.h"
#include "mechanisms/role.h"

namespace swapd::bench {

struct Workload {
  std::string_view name;
  // Measures all configurations and gives the lines of the report.
  Result<std::vector<nlohmann::json>> (*run)(const Context& context);
  // The life of one process; null: all are programs of others.
  Status (*role)(Role& role);
  // The figure as SVG text; null: none.
  std::string (*plot)(const std::vector<nlohmann::json>& lines);
};

[[nodiscard]] const Workload* find_workload(std::string_view name);

// Waits until the client has begun its n-th wait.
[[nodiscard]] Status wait_for_iteration(Team& team, std::uint32_t n);

[[nodiscard]] Result<std::vector<nlohmann::json>> run_client_server(const Context& context);
[[nodiscard]] Status client_server_role(Role& role);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_multi_server(const Context& context);
[[nodiscard]] Status multi_server_role(Role& role);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_cascade(const Context& context);
[[nodiscard]] Status cascade_role(Role& role);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_overhead(const Context& context);
[[nodiscard]] Status overhead_role(Role& role);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_pipeline(const Context& context);
[[nodiscard]] Status pipeline_role(Role& role);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_latency(const Context& context);
[[nodiscard]] Status latency_role(Role& role);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_scale(const Context& context);
[[nodiscard]] Status scale_role(Role& role);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_apps(const Context& context);
[[nodiscard]] Status apps_role(Role& role);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_chat(const Context& context);
[[nodiscard]] Status chat_role(Role& role);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_soak(const Context& context);
[[nodiscard]] std::string plot_soak(const std::vector<nlohmann::json>& lines);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_thin_client(const Context& context);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_cosched(const Context& context);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_response(const Context& context);
[[nodiscard]] Status response_role(Role& role);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_thrash(const Context& context);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_build(const Context& context);

[[nodiscard]] Result<std::vector<nlohmann::json>> run_shape_accuracy(const Context& context);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_shape_overhead(const Context& context);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_shape_rivals(const Context& context);
[[nodiscard]] Status shape_role(Role& role);

[[nodiscard]] Result<std::vector<nlohmann::json>> run_tap_disk(const Context& context);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_tap_network(const Context& context);
[[nodiscard]] std::string plot_tap_share(const std::vector<nlohmann::json>& lines);
[[nodiscard]] Result<std::vector<nlohmann::json>> run_tap_stream(const Context& context);
[[nodiscard]] std::string plot_tap_stream(const std::vector<nlohmann::json>& lines);

// One run of client-server, as overhead needs it too.
[[nodiscard]] Result<Measured> client_server_once(const Context& context, const Setup& setup);

}  // namespace swapd::bench
