#include "app/served_events.h"

#include "events/events_config.h"
#include "kv/cache.h"

namespace pagoda::app {
namespace {

// Between two steps: 6 us of the engine's thread on a Neoverse V1 at 2.1 GHz (kv_bench).
constexpr std::uint32_t kSnapshotPartNodes = 256;

Error of_flag(const Error& error) { return {error.code, "`kv_events_config`: " + error.message}; }

}  // namespace

Result<std::unique_ptr<ServedEvents>> ServedEvents::open(const std::string& config,
                                                         std::uint32_t block_tokens) {
  std::unique_ptr<ServedEvents> served;
  if (config.empty()) return served;
  const Result<events::EventsConfig> parsed = events::parse_events_config(config);
  if (!parsed.ok()) return of_flag(parsed.error());
  if (!parsed.value().enabled) return served;
  served.reset(new ServedEvents(parsed.value(), block_tokens));
  auto publisher = events::Publisher::open(parsed.value(), served->ring_);
  if (!publisher.ok()) return of_flag(publisher.error());
  served->publisher_ = std::move(publisher).value();
  return served;
}

void ServedEvents::start(engine::Engine& engine, const kv::Cache& cache) {
  // The cursor belongs to the engine's thread, which may look at it after the publisher has ended.
  const auto cursor = std::make_shared<kv::SnapshotCursor>();
  publisher_->start(cache.options().groups, [&engine, cursor](bool first) {
    engine.post([cursor, first](kv::Cache& owned) {
      if (first) *cursor = {};
      owned.events().emit_snapshot(*cursor, kSnapshotPartNodes);
    });
  });
}

server::Json ServedEvents::facts() const {
  return {{"incarnation", publisher_->incarnation()},
          {"endpoint", publisher_->endpoint()},
          {"replay_endpoint", publisher_->replay_endpoint()}};
}

}  // namespace pagoda::app
