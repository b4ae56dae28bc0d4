// What swapd's objects understand: the vtables (sd_bus_add_object_vtable(3)) of the interfaces in
// systemd/org.swapd1.*.xml. Their user data is the Manager; of a process, the path says which.
#pragma once

#include <systemd/sd-bus.h>

#include <vector>

namespace swapd::bus {

class Manager;

// Puts all on the connection; the slots hold them there.
[[nodiscard]] int add_objects(sd_bus* bus, Manager& manager, std::vector<sd_bus_slot*>& slots);

}  // namespace swapd::bus
