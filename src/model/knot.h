// The best paths through a *knot*: blocked threads that wait for each other, so that the paths from one to another are
// too many to try them all. Search turns to it.
//
// Best first: the blocked thread with the path of the highest value is opened next, that is, its providers are looked
// at. Each thread is opened once, so the paths form a tree and none is a cycle. All providers of the requester itself
// are looked at, and `max_looked` others, more only to end with the last thread's: one requester costs the same in a
// large knot as in a small one. The price: a thread that was opened by one path does not take over a better path that
// is found later.
//
// The providers of a thread are looked up once and remembered until the model changes, for all requesters.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "model/reach.h"

namespace swapd::model {

class Knot {
 public:
  static constexpr std::size_t max_looked = 256;
  static constexpr std::size_t max_back = 16;
  static constexpr std::size_t max_walked = 4096;

  Knot(const Store& store, ReachNodes& nodes) : store_(store), nodes_(nodes) {}

  // Whether a walk that enters each thread once finds more than `max_back` providers that lead back onto its path, or
  // more than `max_walked` providers.
  [[nodiscard]] bool begins_at(Index requester);
  // The node of what this blocked thread reaches.
  [[nodiscard]] Index run(Index requester);
  // The model has changed.
  void forget();
  // Gives memory back.
  void clear();

  // Providers that the last run() looked at, those of the requester included.
  [[nodiscard]] std::size_t looked() const { return looked_; }
  // Threads whose providers are remembered.
  [[nodiscard]] std::size_t remembered() const { return linked_.size(); }

 private:
  // A provider of what a blocked thread waits for.
  struct Link {
    Index provider = none;
    Index thread = none;
    bool runnable = false;
    ReachStep step;
  };
  // A blocked thread that a path leads to, or the requester, which comes first.
  struct Seen {
    Index thread = none;
    Index before = none;    // in seen_, the thread of which it is a provider …
    Index provider = none;  // … by this record
    Index first = none;     // the provider record by which the path begins
    double value = 1;       // of the path
    float excess_debits = 0;
    Index node = none;       // of the paths that go on from it
    std::size_t direct = 0;  // how many of its providers are runnable or lead to such a thread
    bool leads = false;      // to a runnable thread
  };
  // A runnable thread and the best path to it.
  struct Leaf {
    Index thread = none;
    Index before = none;  // in seen_
    Index provider = none;
    Index first = none;
    Index place = 0;  // which it was, of all that were found
    double value = 0;
    float excess_debits = 0;
  };
  struct Mark {
    std::uint64_t opened = 0;   // in this run
    std::uint64_t found = 0;    // in this run, as leaves_[leaf]
    std::uint64_t counted = 0;  // among the providers of one thread
    Index leaf = none;
    Index links = none;    // in links_
    bool on_path = false;  // of the walk for begins_at()
  };

  void begin();
  struct Walk {
    std::size_t looked = 0, back = 0;
    [[nodiscard]] bool too_long() const { return looked > max_walked || back > max_back; }
  };
  void walk(Index thread, std::size_t depth, Walk& walked);
  void open(Index at);
  void follow(Index at, const Link& link);
  void found(Index at, const Link& link);
  [[nodiscard]] Index write();
  // The first step of the path to the leaf; the others are added to the nodes of the threads on it.
  [[nodiscard]] ReachableLeaf path_to(const Leaf& leaf);
  [[nodiscard]] const std::vector<Link>& links_of(Index thread);
  void look_up(Index thread, bool first, std::vector<Link>& links) const;
  [[nodiscard]] bool opens_later(Index a, Index b) const;  // of seen_

  const Store& store_;
  ReachNodes& nodes_;
  std::vector<Mark> marks_;
  std::deque<std::vector<Link>> links_;
  std::vector<Index> linked_;  // the threads that links_ are of
  std::vector<Link> own_links_;
  std::vector<Seen> seen_;
  std::vector<Index> open_;  // a heap of seen_
  std::vector<Leaf> leaves_;
  std::uint64_t run_ = 0;
  std::uint64_t stamp_ = 0;
  std::size_t looked_ = 0;
};

}  // namespace swapd::model
