// SpaceFinder gives the pages of a model their address in stores: the model's fingerprint with what
// else rows depend on. It works in the background, and goes on to watch the model's files.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "gguf/model_watch.h"

namespace pagoda::app {

class SpaceFinder {
 public:
  // The parts' descriptors must stay open. `rows_id` stands for numerics and KV format.
  SpaceFinder(std::vector<gguf::OpenedPart> parts, std::string rows_id);
  ~SpaceFinder() { stop(); }

  // Tells the engine the address, first as remembered, then as confirmed, or that there is none;
  // on_known gets one that is sure, on a thread of its own. The engine must live until stop().
  void start(engine::Engine& engine, std::function<void(const kv::SpaceId&)> on_known = {});
  // Waits until the address is known for sure, or that there is none. False: it takes longer.
  bool wait(std::chrono::nanoseconds timeout);
  void stop();

  // False, for good: a file of the model has changed. Its bytes are read again in the background,
  // and the engine is told when they are others. Any thread.
  bool is_model_unchanged() { return watch_.is_unchanged(); }

 private:
  // Returns the model's digest once it is sure.
  std::optional<std::string> find(engine::Engine& engine);
  void watch(engine::Engine& engine, const std::string& digest);
  // Reads the files. False: they are not the digest's, and the engine was told, or stop() was
  // called.
  bool confirm(engine::Engine& engine, const std::string& digest);
  kv::SpaceId space_of(const std::string& digest) const;

  const std::vector<gguf::OpenedPart> parts_;
  const std::string rows_id_;
  const gguf::FingerprintOptions options_;
  gguf::ModelWatch watch_;
  std::function<void(const kv::SpaceId&)> on_known_;
  std::atomic<bool> stopping_{false};
  std::promise<void> found_;
  std::future<void> is_found_ = found_.get_future();
  std::thread thread_;
};

}  // namespace pagoda::app
