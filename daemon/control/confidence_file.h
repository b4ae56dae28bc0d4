// The confidences that a swapd leaves to the next one: STATE_DIR/confidences, replaced as a whole every ten seconds and
// at the end. They are advice: where they are lost or damaged, they are learnt anew.
#pragma once

#include <string>
#include <vector>

#include "event/sources.h"
#include "model/saved_confidence.h"

namespace swapd::daemon {

class Engine;

// Reads the file into the engine's model, and keeps it from then on. Control thread.
class ConfidenceFile {
 public:
  // Once the engine has its members: what was learnt of others is forgotten.
  ConfidenceFile(sd_event* loop, Engine& engine, std::string state_dir, std::string boot_id);
  ConfidenceFile(const ConfidenceFile&) = delete;
  ConfidenceFile& operator=(const ConfidenceFile&) = delete;

  void write();

 private:
  void restore_confidences();

  Engine& engine_;
  std::string state_dir_, boot_id_;
  std::vector<model::SavedConfidence> written_;
  bool failed_ = false;  // and said so
  Timer timer_;
};

}  // namespace swapd::daemon
