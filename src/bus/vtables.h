// The interfaces of systemd/org.swapd1.*.xml as sd-bus has them: vtables of Methods.
#pragma once

#include <systemd/sd-bus.h>

#include <vector>

namespace swapd::bus {

class Manager;

// Puts all on the connection; the slots hold them there.
[[nodiscard]] int add_objects(sd_bus* bus, Manager& manager, std::vector<sd_bus_slot*>& slots);

}  // namespace swapd::bus
