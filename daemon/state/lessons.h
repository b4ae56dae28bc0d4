// The confidences that a swapd leaves to the next one: STATE_DIR/confidences, replaced as a whole every ten seconds and
// at the end. They are advice: where they are lost or damaged, they are learnt anew.
#pragma once

#include <systemd/sd-event.h>

#include <string>
#include <vector>

#include "model/learnt.h"

namespace swapd::daemon {

class Engine;

// Reads the file into the engine's model, and keeps it from then on. Control thread.
class LessonsFile {
 public:
  // Once the engine has its members: what was learnt of others is forgotten.
  LessonsFile(sd_event* loop, Engine& engine, std::string state_dir, std::string boot_id);
  ~LessonsFile();
  LessonsFile(const LessonsFile&) = delete;
  LessonsFile& operator=(const LessonsFile&) = delete;

  void write();

 private:
  void recall();
  void write_later();

  sd_event* loop_;
  sd_event_source* timer_ = nullptr;
  Engine& engine_;
  std::string state_dir_, boot_id_;
  std::vector<model::Learnt> written_;
  bool failed_ = false;  // and said so
};

}  // namespace swapd::daemon
