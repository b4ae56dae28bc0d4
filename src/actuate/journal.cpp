#include "actuate/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

namespace swapd::actuate {
namespace {

constexpr std::array<char, 8> magic = {'s', 'w', 'a', 'p', 'd', 'j', 'n', 'l'};
constexpr std::uint32_t version = 1;
constexpr std::size_t record_size = 512;
constexpr std::size_t file_size = record_size * (Journal::capacity + 1);  // the header takes a record's place

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t record_size;
  std::array<char, 64> boot_id;
};

struct Attr {
  std::uint64_t runtime_ns, deadline_ns, period_ns;
  std::uint8_t policy, rt_priority, reset_on_fork;
  std::int8_t nice;
  std::uint8_t unused[4];
};

struct Record {
  std::uint32_t state;  // 0: free
  std::int32_t tid;
  std::uint64_t checksum;  // over all that follows, and the tid
  std::uint64_t sequence;
  std::uint64_t start_time;
  std::int64_t group, old_value, new_value;
  Attr base, set;
  std::int32_t leader;
  std::uint8_t kind;
  std::array<char, 384> path;
};
static_assert(sizeof(Record) <= record_size && sizeof(Header) <= record_size);
static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record::path) == Journal::max_path + 1);

std::uint64_t checksum(const Record& record) {  // FNV-1a
  std::uint64_t hash = 0xCBF29CE484222325ULL ^ static_cast<std::uint32_t>(record.tid);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&record);
  for (std::size_t i = offsetof(Record, sequence); i < sizeof record; ++i)
    hash =
        (hash ^ bytes[i]) * 0x100000001B3ULL;  // NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult): all zeroed
  return hash;
}

Attr pack(const SchedAttr& attr) {
  Attr raw{};
  raw.runtime_ns = attr.runtime_ns;
  raw.deadline_ns = attr.deadline_ns;
  raw.period_ns = attr.period_ns;
  raw.policy = static_cast<std::uint8_t>(attr.policy);
  raw.rt_priority = attr.rt_priority;
  raw.reset_on_fork = attr.reset_on_fork ? 1 : 0;
  raw.nice = attr.nice;
  return raw;
}

std::optional<SchedAttr> unpack(const Attr& raw) {
  if (raw.policy > static_cast<std::uint8_t>(SchedPolicy::deadline)) return std::nullopt;
  SchedAttr attr;
  attr.policy = static_cast<SchedPolicy>(raw.policy);
  attr.nice = raw.nice;
  attr.rt_priority = raw.rt_priority;
  attr.reset_on_fork = raw.reset_on_fork != 0;
  attr.runtime_ns = raw.runtime_ns;
  attr.deadline_ns = raw.deadline_ns;
  attr.period_ns = raw.period_ns;
  return attr;
}

std::optional<Change> unpack(const Record& record) {
  if (record.checksum != checksum(record)) return std::nullopt;
  const std::optional<SchedAttr> base = unpack(record.base);
  const std::optional<SchedAttr> set = unpack(record.set);
  const bool known = record.kind >= static_cast<std::uint8_t>(Change::Kind::thread) &&
                     record.kind <= static_cast<std::uint8_t>(Change::Kind::idle_cgroup);
  if (!base || !set || !known || record.path.back() != '\0') return std::nullopt;
  return Change{static_cast<Change::Kind>(record.kind),
                {record.tid, record.start_time},
                record.leader,
                record.group,
                record.path.data(),
                *base,
                *set,
                record.old_value,
                record.new_value,
                record.sequence};
}

// A second swapd on the same directory would take this one's records for a dead run's. A record lock, not flock: no
// child of ours holds it.
Status lock(int fd, const std::string& path) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd, F_SETLK, &whole) == 0) return Done{};
  if (errno != EAGAIN && errno != EACCES) return errno_error("locking " + path);
  struct flock holder = whole;
  std::string who = "another swapd";
  if (::fcntl(fd, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0)
    who += " (pid " + std::to_string(holder.l_pid) + ")";
  return Error(EBUSY, who + " uses " + path);
}

// New or empty, or a journal of this version.
Result<bool> readable(int fd, const std::string& path) {
  Header header{};
  const ssize_t n = ::pread(fd, &header, sizeof header, 0);
  if (n < 0) return errno_error("reading " + path);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return errno_error("looking at " + path);
  if (!S_ISREG(info.st_mode)) return Error(EINVAL, path + " is not a regular file");
  if (n == 0) return true;
  const bool blank = std::all_of(header.magic.begin(), header.magic.end(), [](char c) { return c == 0; });
  if (blank) return true;  // allocated, and killed before the header was there: nothing was changed by then
  return n == static_cast<ssize_t>(sizeof header) && header.magic == magic && header.version == version &&
         header.record_size == record_size;
}

}  // namespace

Result<Journal> Journal::open(const std::string& state_dir, std::string_view boot_id) {
  if (::mkdir(state_dir.c_str(), 0700) != 0 && errno != EEXIST) return errno_error("making " + state_dir);
  const std::string path = state_dir + "/journal";
  Journal journal;
  for (int attempt = 0;; ++attempt) {
    journal.fd_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!journal.fd_) return errno_error("opening " + path);
    if (auto locked = lock(journal.fd_.get(), path); !locked.ok()) return std::move(locked).error();
    auto ours = readable(journal.fd_.get(), path);
    if (!ours.ok()) return std::move(ours).error();
    if (*ours) break;
    if (attempt > 0) return Error(EINVAL, path + " is not a journal");
    const std::string aside = path + ".bad";
    if (::rename(path.c_str(), aside.c_str()) != 0) return errno_error("setting aside " + path);
    std::string note = path;
    note.append(" is not a journal of this version; set aside as ").append(aside);
    journal.notes_.push_back(std::move(note));
  }
  // Real blocks, or a full disk would be a SIGBUS at the first store.
  if (const int error = ::posix_fallocate(journal.fd_.get(), 0, static_cast<off_t>(file_size)); error != 0)
    return Error(error, "allocating " + path);
  void* map = ::mmap(nullptr, file_size, PROT_READ | PROT_WRITE, MAP_SHARED, journal.fd_.get(), 0);
  if (map == MAP_FAILED) return errno_error("mapping " + path);
  journal.map_ = static_cast<std::byte*>(map);
  journal.load(boot_id);
  return journal;
}

void Journal::load(std::string_view boot_id) {
  auto* header = reinterpret_cast<Header*>(map_);
  std::array<char, 64> boot{};
  boot_id.copy(boot.data(), boot.size() - 1);
  std::size_t torn = 0;
  std::size_t stale = 0;
  const bool same_boot = header->magic == magic && header->boot_id == boot;
  for (Slot slot = 0; slot < capacity; ++slot) {
    Record record{};
    std::memcpy(&record, at(slot), sizeof record);
    if (record.state == 0) continue;
    const std::optional<Change> change = same_boot ? unpack(record) : std::nullopt;
    if (change) {
      left_.push_back({slot, *change});
      sequence_ = std::max(sequence_, change->sequence);
      continue;
    }
    ++(same_boot ? torn : stale);
    std::memset(at(slot), 0, record_size);
  }
  used_ = left_.size();
  std::sort(left_.begin(), left_.end(),
            [](const Left& a, const Left& b) { return a.change.sequence < b.change.sequence; });
  if (torn > 0) notes_.push_back(std::to_string(torn) + " damaged journal records: ignoring them");
  if (stale > 0) notes_.push_back(std::to_string(stale) + " journal records of an earlier boot: ignoring them");
  header->version = version;
  header->record_size = record_size;
  header->boot_id = boot;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  header->magic = magic;
}

Journal::Journal(Journal&& other) noexcept { *this = std::move(other); }

Journal& Journal::operator=(Journal&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(map_, other.map_);
  next_ = other.next_;
  used_ = other.used_;
  sequence_ = other.sequence_;
  left_ = std::move(other.left_);
  notes_ = std::move(other.notes_);
  return *this;
}

Journal::~Journal() {
  if (map_ != nullptr) ::munmap(map_, file_size);
}

std::byte* Journal::at(Slot slot) const { return map_ + (slot + 1) * record_size; }

Result<Journal::Slot> Journal::write(const Change& change) {
  if (change.path.size() > max_path) return Error(ENAMETOOLONG, "journalling " + change.path);
  if (used_ >= capacity) return Error(ENOSPC, "journalling: all records are in use");
  Record record{};
  record.tid = change.thread.tid;
  record.sequence = ++sequence_;
  record.start_time = change.thread.start_time;
  record.group = change.group;
  record.old_value = change.old_value;
  record.new_value = change.new_value;
  record.base = pack(change.base);
  record.set = pack(change.set);
  record.leader = change.leader;
  record.kind = static_cast<std::uint8_t>(change.kind);
  change.path.copy(record.path.data(), max_path);
  record.checksum = checksum(record);
  while (std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at(next_))).load(std::memory_order_relaxed) != 0)
    next_ = (next_ + 1) % capacity;
  const Slot slot = next_;
  next_ = (next_ + 1) % capacity;
  std::memcpy(at(slot), &record, sizeof record);
  // Whole, it counts; the change follows. The compiler must not move these stores past each other, nor behind that.
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at(slot))).store(1, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ++used_;
  return slot;
}

void Journal::clear(Slot slot) {
  if (slot == none) return;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at(slot))).store(0, std::memory_order_release);
  --used_;
}

}  // namespace swapd::actuate
