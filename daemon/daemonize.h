// The process in the terminal, and the daemon in a session of its own.
//
// An autogroup's nice (sched(7)) is one for a whole session: swapd may only raise its own if no other program is in the
// session. So if swapd is started from a shell, the daemon is a child in a new session, and the process that the
// shell knows stays as its front: it passes signals on and ends with the daemon's status. If it is killed, the daemon
// gets SIGTERM.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace swapd::daemon {

// Returns in the process that is to be the daemon. `foreground`: the caller waits for its end; else the caller ends
// with 0 as soon as the daemon has written one byte to the returned descriptor (invalid: no process waits).
[[nodiscard]] Result<Fd> daemonize(bool foreground);

}  // namespace swapd::daemon
