#include "shaping/io_limits.h"

#include "observe/io/io_target.h"
#include "sys/netlink/socket_route.h"

namespace swapd::daemon {
namespace {

decide::DeviceLimits limits_of(const policy::IoLimits& said) {
  const auto limit = [&](const std::optional<std::int64_t>& bytes, const std::optional<std::int64_t>& operations) {
    return decide::Limit{.bytes = bytes, .operations = operations, .burst = said.burst};
  };
  return {.both = limit(said.both, said.operations),
          .read = limit(said.read, said.read_operations),
          .write = limit(said.write, said.write_operations)};
}

// A path or MAJOR:MINOR is a disk, any other name a link.
Result<decide::Device> device_of(const std::string& name, const sys::BlockDevices& disks) {
  const bool number = name.find_first_not_of("0123456789:") == std::string::npos;
  if (name.starts_with('/') || number) {
    const auto disk = disks.find(name);
    if (!disk) return disk.error();
    return decide::Device{decide::Device::Kind::disk, observe::disk_number(*disk)};
  }
  const auto link = sys::link_named(name);
  if (!link) return link.error();
  return decide::Device{decide::Device::Kind::network, observe::link_number(link->network_namespace, link->index)};
}

}  // namespace

ResolvedLimits resolve_limits(const policy::IoRules& rules, const sys::BlockDevices& disks) {
  ResolvedLimits out;
  out.limits.mode = rules.mode == policy::IoMode::device ? decide::ShapeMode::device : decide::ShapeMode::logical;
  out.limits.favoured_wait = rules.favoured_wait;
  // The disk moves bytes for directories and inodes, too. Their calls are not trapped: that would cost each
  // stat(2) of a build some 10 µs, and some of them never end with EINTR by themselves. So whose disk moves something
  // for them is stopped as for a mapped file.
  out.limits.freezes = rules.mapped == policy::Mapped::freeze || rules.mode == policy::IoMode::device;
  out.limits.disks = limits_of(rules.disk);
  out.limits.networks = limits_of(rules.network);
  for (const auto& [name, said] : rules.devices) {
    const auto device = device_of(name, disks);
    if (device)
      out.limits.devices[*device] = limits_of(said);
    else
      out.unknown[name] = "no disk or network link '" + name + "': " + device.error().text();
  }
  return out;
}

}  // namespace swapd::daemon
