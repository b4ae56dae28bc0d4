#include "coscheduling/serial_load.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/apps.h"
#include "harness/usage.h"

namespace swapd::bench {
namespace {

constexpr int files = 12, lines_of_a_file = 2500;

// Text that packs about as well as a source file does.
void write_text(const std::string& path, unsigned seed) {
  std::ofstream out(path);
  for (int i = 0; i < lines_of_a_file; ++i) {
    seed = seed * 1664525U + 1013904223U;
    out << "line " << i << " of a text, and a number: " << seed << ' ' << (seed >> 16) % 1000 << '\n';
  }
}

constexpr const char* page =
    "%!\n"
    "/Times-Roman findfont 9 scalefont setfont\n"
    "0 1 1200 { /i exch def i 360 div setgray newpath\n"
    "  i 7 mul 540 mod 36 add i 11 mul 700 mod 36 add moveto (a page of text) show\n"
    "  i 13 mul 540 mod 36 add i 17 mul 700 mod 36 add 30 0 i 3 mod 120 mul arc fill } for\n"
    "showpage\n";

std::string body_of(const std::string& kind) {
  if (kind == "tar") return "tar cf - text | gzip -c > /dev/null";
  return "gs -q -dNOPAUSE -dBATCH -sDEVICE=ppmraw -r72 -sOutputFile=/dev/null page.ps > /dev/null";
}

}  // namespace

std::vector<std::string> serial_programs() {
  std::vector<std::string> kinds;
  if (!path_of("tar").empty() && !path_of("gzip").empty()) kinds.emplace_back("tar");
  if (!path_of("gs").empty()) kinds.emplace_back("ghostscript");
  return kinds;
}

// Ends the loops; a program that a loop had just started ends by itself.
SerialLoad::~SerialLoad() { end_all(loops_); }

Status SerialLoad::prepare() const {
  const std::string text = dir_.path() + "/text";
  if (::mkdir(text.c_str(), 0700) != 0) return errno_error(text);
  for (unsigned i = 0; i < files; ++i) write_text(text + "/" + std::to_string(i), i);
  if (!(std::ofstream(dir_.path() + "/page.ps") << page)) return Error(EIO, "writing a page");
  return Done{};
}

Result<SerialLoad> SerialLoad::start(const std::vector<std::string>& kinds, int per_cpu, const std::vector<int>& cpus,
                                     bool split, std::chrono::seconds at_most) {
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  SerialLoad load(std::move(*dir));
  if (Status prepared = load.prepare(); !prepared) return prepared.error();
  const std::string end = std::to_string(at_most.count() * 1'000'000'000);
  for (const int cpu : cpus) {
    for (int i = 0; i < per_cpu; ++i) {
      const std::string& kind = kinds[static_cast<std::size_t>(i) % kinds.size()];
      // Each run is a byte of the output; without its directory or the harness the loop ends.
      const std::string script = "cd " + load.dir_.path() + " || exit 1\n" + "end=$(($(date +%s%N) + " + end + "))\n" +
                                 "while [ -e page.ps ] && kill -0 " + std::to_string(::getpid()) +
                                 " && [ $(date +%s%N) -lt $end ]; do\n" + body_of(kind) + "\nprintf .\ndone";
      Spawn spawn;
      spawn.argv = {"/bin/sh", "-c", script};
      spawn.cpus = {cpu};
      spawn.own_session = split;
      spawn.output = load.dir_.path() + "/" + kind + ".runs";
      spawn.errors = "/dev/null";
      auto loop = Child::start(spawn);
      if (!loop) return loop.error();
      load.loops_.push_back(std::move(*loop));
    }
  }
  return load;
}

double SerialLoad::cpu_s() const {
  double sum = 0;
  for (const Child& loop : loops_) sum += tree_cpu_s(loop.pid());
  return sum;
}

double SerialLoad::runs() const {
  double sum = 0;
  for (const char* kind : {"tar", "ghostscript"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(dir_.path() + "/" + kind + ".runs", error);
    if (!error) sum += static_cast<double>(size);
  }
  return sum;
}

}  // namespace swapd::bench
