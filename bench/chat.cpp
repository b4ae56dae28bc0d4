// chat: rooms of users who take turns in sending a message to all of their room [SWAP04 §5.4].
//
// Server and clients are two processes with a thread for each connection and direction. In a room the next user speaks
// when the message before has come to them, so that each message needs four threads in a row: the writer of the one
// who speaks, the server's reader of that connection, its writer of the next one's, and that one's reader. The clients
// are important; the figure is how many messages reach a user in a second.
#include "chat.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <latch>
#include <mutex>
#include <sstream>
#include <thread>

namespace swapd::bench {
namespace {

constexpr double server_us = 20;  // of CPU time for a message to a user, all four threads; only for the time limit

struct Message {
  std::uint32_t room = 0, user = 0, number = 0;
  std::array<char, 52> text{};
};

struct ChatShape {
  std::uint32_t rooms = 0, users = 0, messages = 0;  // of each user
  int port = 0;
  [[nodiscard]] std::string word() const {
    std::ostringstream text;
    text << rooms << ' ' << users << ' ' << messages << ' ' << port;
    return text.str();
  }
  static ChatShape of(const std::string& word) {
    ChatShape shape;
    std::istringstream(word) >> shape.rooms >> shape.users >> shape.messages >> shape.port;
    return shape;
  }
};

sockaddr_in chat_address(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

struct Door {
  Fd fd;
  int port = 0;
};

Result<Door> open_door() {
  Door door{.fd = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in address = chat_address(0);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!door.fd || ::bind(door.fd.get(), generic, size) != 0 || ::listen(door.fd.get(), SOMAXCONN) != 0 ||
      ::getsockname(door.fd.get(), generic, &size) != 0)
    return errno_error("opening a port");
  door.port = ntohs(address.sin_port);
  return door;
}

Status without_delay(int fd) {
  const int on = 1;
  if (::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0) return Done{};
  return errno_error("TCP_NODELAY");
}

Status send_message(int fd, const Message& message) {
  const ssize_t sent = ::send(fd, &message, sizeof message, MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(sizeof message)) return Done{};
  return sent < 0 ? Status(errno_error("sending a message")) : Status(Error(EPROTO, "a message was sent in part"));
}

Status receive_message(int fd, Message& message) {
  const ssize_t got = ::recv(fd, &message, sizeof message, MSG_WAITALL);
  if (got == static_cast<ssize_t>(sizeof message)) return Done{};
  return got < 0 ? Status(errno_error("receiving a message")) : Status(Error(EPIPE, "the other side is gone"));
}

// --- the server ---

// A user's place in a room: the connection, and what is still to be written to it.
class Seat {
 public:
  explicit Seat(Fd fd) : fd_(std::move(fd)) {}
  [[nodiscard]] int fd() const { return fd_.get(); }
  void put(const Message& message) {
    {
      const std::lock_guard hold(mutex_);
      waiting_.push_back(message);
    }
    there_.notify_one();
  }
  Message take() {
    std::unique_lock hold(mutex_);
    there_.wait(hold, [&] { return !waiting_.empty(); });
    const Message message = waiting_.front();
    waiting_.pop_front();
    return message;
  }

 private:
  Fd fd_;
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<Message> waiting_;
};

// The lock keeps the messages of a room in one order for all: a later one may be read by another thread before an
// earlier one has been given to all of them.
struct Room {
  std::deque<Seat> seats;
  std::mutex mutex;
};

// The first message of each connection says where its user sits.
Result<std::deque<Room>> seat_all(int door, const ChatShape& shape) {
  std::deque<Room> rooms(shape.rooms);
  for (std::uint32_t i = 0; i < shape.rooms * shape.users; ++i) {
    Fd fd(::accept4(door, nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd) return errno_error("accepting a user");
    Message hello;
    if (Status set = without_delay(fd.get()); !set) return set.error();
    if (Status got = receive_message(fd.get(), hello); !got) return got.error();
    if (hello.room >= shape.rooms) return Error(EPROTO, "no such room");
    rooms[hello.room].seats.emplace_back(std::move(fd));
  }
  return rooms;
}

void read_seat(Room& room, Seat& seat) {
  for (Message message; receive_message(seat.fd(), message);) {
    const std::lock_guard hold(room.mutex);
    for (Seat& other : room.seats) other.put(message);
  }
}

void write_seat(Seat& seat) {
  while (send_message(seat.fd(), seat.take())) {
  }
}

Status serve_chat(Role& role) {
  auto rooms = seat_all(role.options().fds.at(0), ChatShape::of(role.options().word));
  if (!rooms) return rooms.error();
  std::deque<std::thread> threads;
  for (Room& room : *rooms) {
    for (Seat& seat : room.seats) {
      threads.emplace_back([&room, &seat] { read_seat(room, seat); });
      threads.emplace_back([&seat] { write_seat(seat); });
    }
  }
  Status go = role.wait_for_go();
  for (std::thread& thread : threads) thread.join();  // until the harness ends it
  return go ? Status(Error(EPIPE, "the clients are gone")) : go;
}

// --- the clients ---

class User {
 public:
  User(Fd fd, const ChatShape& shape, std::uint32_t room, std::uint32_t user)
      : fd_(std::move(fd)), shape_(shape), room_(room), user_(user) {}
  // Each message in its order; the user's own turn comes with the one before.
  Status listen() {
    Message message;
    for (std::uint32_t number = 0; number < shape_.users * shape_.messages; ++number) {
      if (Status got = receive_message(fd_.get(), message); !got) return got;
      if (message.room != room_ || message.number != number)
        return Error(EBADMSG, "message " + std::to_string(message.number) + " instead of " + std::to_string(number));
      if ((number + 1) % shape_.users == user_) note(number + 1);
    }
    return Done{};
  }
  Status speak() {
    for (std::uint32_t i = 0; i < shape_.messages; ++i) {
      const std::uint32_t number = i * shape_.users + user_;
      wait_for(number);
      if (Status sent = send_message(fd_.get(), {.room = room_, .user = user_, .number = number}); !sent) return sent;
    }
    return Done{};
  }

 private:
  void note(std::uint32_t seen) {
    {
      const std::lock_guard hold(mutex_);
      seen_ = seen;
    }
    turn_.notify_one();
  }
  void wait_for(std::uint32_t number) {
    std::unique_lock hold(mutex_);
    turn_.wait(hold, [&] { return seen_ >= number; });
  }
  Fd fd_;
  ChatShape shape_;
  std::uint32_t room_, user_;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::uint32_t seen_ = 0;
};

Result<Fd> enter_room(const ChatShape& shape, std::uint32_t room, std::uint32_t user) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = chat_address(shape.port);
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_error("connecting to the chat server");
  if (Status set = without_delay(fd.get()); !set) return set.error();
  if (Status said = send_message(fd.get(), {.room = room, .user = user}); !said) return said.error();
  return fd;
}

Status talk(Role& role) {
  const ChatShape shape = ChatShape::of(role.options().word);
  std::deque<User> users;
  for (std::uint32_t room = 0; room < shape.rooms; ++room) {
    for (std::uint32_t user = 0; user < shape.users; ++user) {
      auto fd = enter_room(shape, room, user);
      if (!fd) return fd.error();
      users.emplace_back(std::move(*fd), shape, room, user);
    }
  }
  std::latch gate(1);
  std::deque<std::thread> threads;
  // A thread that fails tells the harness, which ends all: the others would wait for ever.
  const auto start = [&](User& user, Status (User::*life)()) {
    threads.emplace_back([&role, &gate, &user, life] {
      gate.wait();
      if (const Status done = (user.*life)(); !done) (void)role.say("failed: " + done.error().text());
    });
  };
  for (User& user : users) {
    start(user, &User::listen);
    start(user, &User::speak);
  }
  const Status go = role.wait_for_go();
  const auto began = std::chrono::steady_clock::now();
  gate.count_down();
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  if (!go) return go;
  role.note_sample(0, took.count());
  return role.finish(1);
}

// --- the harness ---

Result<RateRun> one_chat(const Context& context, const Setup& setup) {
  auto chat = Chat::open(context, setup);
  if (!chat) return chat.error();
  Team& team = chat->team();
  if (Status loaded = team.load_up(); !loaded) return loaded.error();
  const auto meter = Meter::start(team.daemon(), team.hogs());
  if (!meter) return meter.error();
  if (Status begun = team.begin(); !begun) return begun.error();
  if (const auto done = team.line_of(0, team.limit()); !done) return done.error();
  const auto cost = meter->stop();
  if (!cost) return cost.error();
  const auto rate = chat->close();
  if (!rate) return rate.error();
  return RateRun{.throughput = *rate, .cost = *cost};
}

}  // namespace

std::uint64_t Chat::deliveries(const Options::Chat& chat) {
  return static_cast<std::uint64_t>(chat.rooms) * static_cast<std::uint64_t>(chat.users) *
         static_cast<std::uint64_t>(chat.users) * static_cast<std::uint64_t>(chat.messages);
}

Result<Chat> Chat::open(const Context& context, const Setup& setup, const Daemon* daemon) {
  const Options::Chat& asked = context.options.chat;
  auto team = Team::make(context, setup, daemon);
  if (!team) return team.error();
  auto door = open_door();
  if (!door) return door.error();
  const ChatShape shape{.rooms = static_cast<std::uint32_t>(asked.rooms),
                        .users = static_cast<std::uint32_t>(asked.users),
                        .messages = static_cast<std::uint32_t>(asked.messages),
                        .port = door->port};
  RoleSpec client, server;
  client.role.role = "client";
  client.important = true;
  server.role.role = "server";
  server.role.fds = {door->fd.get()};
  client.role.word = server.role.word = shape.word();
  if (Status added = (*team)->add(client); !added) return added.error();
  if (Status added = (*team)->add(server); !added) return added.error();
  return Chat(std::move(*team), deliveries(asked));
}

Result<double> Chat::close() {
  const auto measured = team_->finish_after_done();
  if (!measured) return measured.error();
  if (measured->samples_ms.empty() || measured->samples_ms.front() <= 0) return Error(EPROTO, "the chat took no time");
  return static_cast<double>(deliveries_) / (measured->samples_ms.front() / 1e3);
}

Setup chat_setup(const Options& options) {
  Setup setup{.mechanism = "tcp", .hogs_free = true, .iterations = 1};
  setup.demand_ms = server_us / 1e3 * static_cast<double>(Chat::deliveries(options.chat));
  setup.extra = {{"rooms", options.chat.rooms}, {"users", options.chat.users}, {"messages", options.chat.messages}};
  return setup;
}

Result<std::vector<nlohmann::json>> run_chat(const Context& context) {
  const Options& options = context.options;
  auto rows = measure_rates(spread(chat_setup(options), options), options,
                            [&](const Setup& setup) { return one_chat(context, setup); });
  if (!rows) return rows.error();
  return rate_lines(*rows, options, vanilla_unloaded);
}

Status chat_role(Role& role) { return role.is("server") ? serve_chat(role) : talk(role); }

}  // namespace swapd::bench
