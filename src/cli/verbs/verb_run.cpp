// swapctl run: becomes the program (docs/design.md, Launch). Everything that can be refused is refused before anything
// has changed; single-threaded throughout; every descriptor close-on-exec; signal mask and dispositions untouched.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <system_error>

#include "cli/embedded.h"
#include "cli/failure.h"
#include "cli/program.h"
#include "cli/sched_options.h"
#include "cli/verbs/verbs.h"
#include "cli/words.h"
#include "sys/process/futex.h"
#include "sys/process/pidfd.h"
#include "sys/process/privilege.h"
#include "sys/sched/scheduler.h"
#include "sys/seccomp/launch.h"
#include "sys/seccomp/launcher.h"
#include "sys/seccomp/own_listener.h"

namespace swapd::cli {
namespace {

constexpr std::chrono::milliseconds launch_timeout{10'000};

struct RunOptions {
  std::string class_name;
  std::string observe = "auto";
  bool embedded = false;
  bool allow_no_new_privs = false;
  bool no_filter = false;  // the program has a listener of its own
  bool filter = false;     // it has none, whatever its file looks like
  bool verbose = false;
};

// If the caller left one of 0, 1, 2 closed, our next descriptor would become it, and an error message go there.
// Filled with /dev/null until execve, which closes it again.
void fill_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR | O_CLOEXEC));
}

Status check_privilege(const RunOptions& options) {
  if (options.allow_no_new_privs || sys::has_cap_sys_admin() || sys::has_no_new_privs()) return Done{};
  return failure(
      "without CAP_SYS_ADMIN the program must run with no_new_privs, for good: sudo, setuid programs and file "
      "capabilities will not work in it and its children; add --allow-no-new-privs if that is fine");
}

// The page that launcher and swapd share. Its size is sealed, so that neither can make the other fault.
class LaunchMemory {
 public:
  static Result<LaunchMemory> make() {
    const auto failed = [] { return failure(errno_error("cannot make the memory to share with swapd").text()); };
    Fd fd(::memfd_create("swapd-launch", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd || ::ftruncate(fd.get(), sizeof(sys::launch::Shared)) < 0) return failed();
    if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) return failed();
    void* address = ::mmap(nullptr, sizeof(sys::launch::Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (address == MAP_FAILED) return failed();
    return LaunchMemory(std::move(fd), new (address) sys::launch::Shared);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Stays mapped until execve or exit.
  [[nodiscard]] sys::launch::Shared& shared() const { return *shared_; }

 private:
  LaunchMemory(Fd fd, sys::launch::Shared* shared) : fd_(std::move(fd)), shared_(shared) {}
  Fd fd_;
  sys::launch::Shared* shared_;
};

Status set_priority(const AskedPriority& asked) {
  const sys::LinuxScheduler scheduler;
  const Status set = asked.nice_alone ? scheduler.set_nice(0, asked.attr.nice) : scheduler.set(0, asked.attr);
  if (set) return Done{};
  return failure("cannot take the priority that was asked for: " + set.error().text() + "; nothing was run");
}

Status install(const LaunchAnswer& answer, const LaunchMemory& memory, const RunOptions& options) {
  const Status installed =
      sys::launch::install_and_wait({answer.program, &memory.shared(), options.allow_no_new_privs, launch_timeout});
  if (installed) return Done{};
  if (installed.error().code() == EBUSY)
    return failure(
        "this process has a seccomp listener already, which is not swapd's: run the program outside of that "
        "supervisor; nothing was run");
  return failure(installed.error().text() + "; nothing was run");
}

void do_without(const LaunchMemory& memory) {
  memory.shared().listener.store(sys::launch::not_installed);
  sys::futex_wake(memory.shared().listener);
}

enum class Entered : std::uint8_t { freely, filtered, without_filter };

// Enters this process, which is to be that program, with the swapd at `socket`. How: `as`.
Status enter(const std::string& socket, const RunOptions& options, const std::string& program, Entered& as) {
  const Result<LaunchMemory> memory = LaunchMemory::make();
  if (!memory) return memory.error();
  LaunchAnswer answer;
  {
    Result<Fd> self = sys::open_pidfd(::getpid());
    if (!self) return failure(self.error().text());
    Result<Client> client = Client::connect(socket);
    if (!client) return std::move(client).error();
    const auto launch = [&](const std::string& observe) {
      return client->launch(self->get(), memory->fd(), options.class_name, observe);
    };
    const std::string without = "none:" + program.substr(program.rfind('/') + 1);
    Result<LaunchAnswer> launched = launch(options.no_filter ? without : options.observe);
    if (!launched) return std::move(launched).error();
    answer = std::move(launched).value();
    // One that is filtered already (install is false) has to see for itself.
    if (answer.install && !options.filter && sys::file_asks_for_listener(program)) {
      do_without(*memory);
      launched = launch(without);
      if (!launched) return std::move(launched).error();
      as = Entered::without_filter;
      return Done{};
    }
  }  // the connection is closed: once the filter is in, its calls might have no answer
  as = answer.install ? Entered::filtered : Entered::freely;
  if (!answer.install) return Done{};
  if (Status allowed = check_privilege(options); !allowed) {
    do_without(*memory);
    return allowed;
  }
  return install(answer, *memory, options);
}

int run(const RunOptions& options, const std::optional<AskedPriority>& priority, const Context& context) {
  const auto refuse = [&](const Error& error) { return report(*context.err, error); };
  fill_standard_descriptors();
  if (context.command.empty()) return refuse(user_mistake("give a program to run; see swapctl run --help"));
  const Result<Program> program = find_program(context.command.front());
  if (!program) {
    static_cast<void>(refuse(program.error()));
    return program.error().code() == ENOENT ? exit_not_found : exit_not_executable;
  }
  std::string socket = context.socket;
  if (options.embedded) {
    // If a listener will be wanted, this can be said before anything is started.
    const bool filtered_run = options.observe == "seccomp" || !sys::has_capability(CAP_BPF);
    if (const Status allowed = filtered_run ? check_privilege(options) : Status(Done{}); !allowed)
      return refuse(allowed.error());
    const Result<Embedded> embedded = start_embedded(options.observe, launch_timeout);
    if (!embedded) return refuse(embedded.error());
    socket = embedded->socket;
    if (options.verbose) *context.err << "swapctl: the private swapd listens at " << socket << std::endl;
  }
  // Before the launch request, so that swapd sees the program's own priority from the start.
  if (priority)
    if (const Status set = set_priority(*priority); !set) return refuse(set.error());
  Entered as = Entered::freely;
  if (const Status entered = enter(socket, options, program->path, as); !entered) return refuse(entered.error());
  if (as == Entered::without_filter)
    *context.err << "swapctl: warning: " << printable(program->path)
                 << " installs a seccomp listener of its own, and can have no other: it runs without limits"
                 << " and unseen by the seccomp observer (--filter if it does not)" << std::endl;
  if (as == Entered::filtered && program->is_32_bit)
    *context.err << "swapctl: warning: " << printable(program->path)
                 << " is a 32-bit program: it runs, but its calls are not observed" << std::endl;

  std::vector<char*> arguments;
  for (const std::string& word : context.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  const int code = errno;
  static_cast<void>(
      refuse(failure("cannot execute " + context.command.front() + ": " + std::generic_category().message(code))));
  return code == ENOENT ? exit_not_found : exit_not_executable;
}

}  // namespace

Action declare_run(CLI::App& app, Context& context) {
  auto options = std::make_shared<RunOptions>();
  app.add_option("--class", options->class_name, "The class that the program belongs to")->type_name("NAME");
  auto priority = std::make_shared<SchedOptions>(app, false);
  app.add_option("--observe", options->observe, "How it is observed: auto, bpf or seccomp")
      ->check(CLI::IsMember(std::vector<std::string>(observer_words.begin(), observer_words.end())).description(""))
      ->type_name("HOW");
  app.add_flag("--embedded", options->embedded, "Start a private swapd that ends with the program");
  app.add_flag("--allow-no-new-privs", options->allow_no_new_privs,
               "Without privilege: go on although sudo and setuid programs will not work inside");
  CLI::Option* without =
      app.add_flag("--no-filter", options->no_filter,
                   "Without a seccomp filter: the program has a listener of its own; no limits hold for it");
  app.add_flag("--filter", options->filter,
               "With swapd's filter where one is needed, though the program's file looks as if it had a listener")
      ->excludes(without);
  app.add_flag("--verbose", options->verbose, "Say where a private swapd listens");
  app.footer(R"(swapctl becomes the program: same process id, terminal, signals, descriptors and environment.
What the program starts is supervised with it. Only programs that are supervised can be helped:
run those that wait, and those they wait for.

Examples:
  swapctl run --fifo 50 -- psql -c 'SELECT 1'     a program that matters
  swapctl run -- make -j4                         one that does not, but may hold what others need
  swapctl run --embedded --nice -10 ./service     no daemon needed)");
  return [options, priority, &context] {
    const Result<std::optional<AskedPriority>> given = priority->asked();
    return given ? run(*options, *given, context) : report(*context.err, given.error());
  };
}

}  // namespace swapd::cli
