// swapd on the system bus (org.swapd1(5)). A user who may not see or do something gets what swapd gives that user; where
// polkit would ask for a password, Cockpit's agent does.
/* global cockpit */

const path = "/org/swapd1", manager = "org.swapd1.Manager";
let client = null;

// A connection with administrative access if the session has that, and another one when that changes.
export function connect(changed) {
  const open = () => {
    client?.close();
    client = cockpit.dbus("org.swapd1", { bus: "system", superuser: "try" });
    client.addEventListener("close", (_event, options) => changed(options?.problem ?? "closed"));
    changed(null);
  };
  cockpit.permission({ admin: true }).addEventListener("changed", open);
  open();
}

export async function call(method, signature, ...values) {
  return client.call(path, manager, method, values, { flags: "i", ...(signature ? { type: signature } : {}) });
}

// A method that gives JSON.
export async function ask(method, signature, ...values) {
  return JSON.parse((await call(method, signature, ...values))[0]);
}

// told: name of the signal, its arguments. Returns a function that ends it.
export function follow(told) {
  const subscription = client.subscribe({ path, interface: manager }, (_path, _interface, signal, values) => told(signal, values));
  call("Subscribe").catch(() => {});
  return () => {
    subscription.remove();
    call("Unsubscribe").catch(() => {});
  };
}

export function message(error) {
  if (error.problem === "access-denied") return "You may not do this. Turn on administrative access, or ask an administrator.";
  if (error.problem === "not-found" || error.name === "org.freedesktop.DBus.Error.ServiceUnknown") return "swapd does not run.";
  return error.message ?? String(error.problem ?? error);
}
