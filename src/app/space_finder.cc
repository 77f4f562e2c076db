#include "app/space_finder.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "app/cache_folder.h"
#include "terminal/messages.h"

namespace pagoda::app {
namespace {

constexpr int kPriorityLowest = 19;

}  // namespace

SpaceFinder::SpaceFinder(std::vector<gguf::OpenedPart> parts, std::string rows_id)
    : parts_(std::move(parts)),
      rows_id_(std::move(rows_id)),
      options_{.memory_path = cache_folder() + "/fingerprints"},
      watch_(parts_) {}

void SpaceFinder::start(engine::Engine& engine, std::function<void(const kv::SpaceId&)> on_known) {
  on_known_ = std::move(on_known);
  thread_ = std::thread([this, &engine] {
    const std::optional<std::string> digest = find(engine);
    found_.set_value();
    if (digest) watch(engine, *digest);
  });
}

bool SpaceFinder::wait(std::chrono::nanoseconds timeout) {
  return !thread_.joinable() || is_found_.wait_for(timeout) == std::future_status::ready;
}

void SpaceFinder::stop() {
  stopping_ = true;
  watch_.stop();
  if (thread_.joinable()) thread_.join();
}

kv::SpaceId SpaceFinder::space_of(const std::string& digest) const {
  return kv::space_id(fmt::format("{} {}", digest, rows_id_));
}

std::optional<std::string> SpaceFinder::find(engine::Engine& engine) {
  const auto found = gguf::fingerprint(parts_, options_, stopping_);
  if (stopping_) return std::nullopt;
  if (!found.ok()) {
    terminal::print_warning(fmt::format("KV is kept in memory only: {}", found.error().message));
    engine.drop_space(found.error().message);
    return std::nullopt;
  }
  const auto& [digest, is_remembered] = found.value();
  engine.set_space(space_of(digest), !is_remembered);
  if (is_remembered) {
    if (!confirm(engine, digest)) return std::nullopt;
    engine.set_space(space_of(digest));
  }
  if (on_known_) on_known_(space_of(digest));
  return digest;
}

// Nothing is written from the change on (ModelWatch); what is left to find out is whether answers
// are still the model's.
void SpaceFinder::watch(engine::Engine& engine, const std::string& digest) {
  if (!watch_.wait_for_change() || !confirm(engine, digest)) return;
  terminal::print_warning(
      fmt::format("{}: attributes or links of the model's files have changed, and their bytes have "
                  "not; KV is read from tiers and not written to them until the next start",
                  parts_[0].path));
}

bool SpaceFinder::confirm(engine::Engine& engine, const std::string& digest) {
  // Threads that compute come first.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kPriorityLowest);
  const auto same = gguf::confirm_fingerprint(parts_, digest, options_, stopping_);
  if (stopping_) return false;
  if (same.ok() && same.value()) return true;
  engine.drop_space("the KV that this was computed with may be another model's: ask again");
  terminal::print_error(fmt::format(
      "{}; KV that was cached is dropped, and is kept in memory only until the next start",
      same.ok()
          ? fmt::format("{}: its bytes are not those that its KV was kept for", parts_[0].path)
          : same.error().message));
  return false;
}

}  // namespace pagoda::app
