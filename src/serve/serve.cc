#include "serve/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>

#include "app/draft_model.h"
#include "app/kv_dtype.h"
#include "app/loaded_model.h"
#include "app/mask_tokens.h"
#include "app/model_name.h"
#include "app/served_events.h"
#include "app/served_source.h"
#include "app/tier_set.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/random.h"
#include "chat/served_form.h"
#include "engine/engine.h"
#include "kernels/select.h"
#include "serve/cache_line.h"
#include "serve/dtype_blocks.h"
#include "serve/greeting.h"
#include "serve/held_signal.h"
#include "serve/kv_quality_watch.h"
#include "serve/policy_verdicts.h"
#include "serve/signals.h"
#include "server/api/prompt_normalising.h"
#include "server/reply_queue.h"
#include "server/server.h"
#include "terminal/messages.h"
#include "text/chat_template.h"

namespace pagoda::serve {
namespace {

void print_warnings(const app::KeySource& keys) {
  for (const std::string& warning : keys.warnings()) terminal::print_warning(warning);
}

// Whatever cannot be read stays as it was.
void reload(app::KeySource& source, engine::Engine& engine, server::Server& server,
            app::TierSet* tier_set) {
  const auto keys = source.read();
  if (keys.ok()) {
    engine.set_tenants(source.tenants());  // before a key can name them
    if (tier_set != nullptr) tier_set->set_owners(source.secret(), source.tenants());
    server.set_keys(keys.value());
    print_warnings(source);
  } else {
    terminal::print_warning(fmt::format("the old keys stay: {}", keys.error().message));
  }
  Status certificate = server.reload_certificate();
  if (certificate.ok() && tier_set != nullptr) certificate = tier_set->reload_certificate();
  if (!certificate.ok()) {
    terminal::print_warning(
        fmt::format("the old certificate stays: {}", certificate.error().message));
  }
  if (keys.ok() && certificate.ok()) fmt::print("keys and certificate were read again\n");
  std::fflush(stdout);
}

void reload_until_stopped(Signals& signals, app::KeySource& source, engine::Engine& engine,
                          server::Server& server, app::TierSet* tier_set) {
  while (signals.wait() == Signals::Asked::kReload) reload(source, engine, server, tier_set);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::vector<std::string> served_names(const ServeOptions& options,
                                      const app::ServedSource& source) {
  if (!options.served_names.empty()) return options.served_names;
  return source.names();
}

Result<std::optional<chat::ServedForm>> find_answer_form(
    const ServeOptions& options, const std::optional<text::ChatTemplate>& chat_template,
    const text::Tokenizer& tokenizer) {
  if (!chat_template) return std::optional<chat::ServedForm>();
  ASSIGN_OR_RETURN(chat::ServedForm form,
                   chat::find_served_form(*chat_template, tokenizer, options.forms));
  if (form.found.unreadable_calls && form.found.calls_from == "none") {
    terminal::print_warning(
        "the chat template writes tool calls in a form that is not understood: calls stay text "
        "unless `tool_call_parser` names their form");
  }
  return std::optional(std::move(form));
}

// Pages are kept under the fingerprint of a file: of random weights, none are. Several ranks have
// no tiers: those that are asked for are refused, by the backend.
bool wants_tiers(const ServeOptions& options, const app::ServedSource& source) {
  const bool any = options.device.ranks > 1 ? options.tiers.any_named() : options.tiers.any();
  return options.prefix_caching && any && !source.parts().empty();
}

// Sets the options of a backend that depend on the model, and loads its draft model.
Status fit_to_model(const ServeOptions& options, const app::ServedSource& source,
                    const kernels::KernelSet& kernels, engine::BackendOptions& sizes) {
  const std::span<const TokenId> ends = source.tokenizer().end_tokens();
  sizes.model_name = served_names(options, source).front();
  sizes.end_tokens.assign(ends.begin(), ends.end());
  sizes.hash_blocks = wants_tiers(options, source);
  sizes.find_by_hash = sizes.hash_blocks && !options.tiers.peer.listen.empty();
  ASSIGN_OR_RETURN(sizes.draft_model,
                   app::load_draft_model(options.speculation, source.tokenizer(), kernels));
  return ok_status();
}

// One request that names no limit does not run for minutes.
void set_limits(const ServeOptions& options, engine::CoreOptions& core) {
  core.requests_queued_max = options.requests_queued_max;
  const std::uint64_t quarter = std::max<std::uint64_t>(core.limits.context_tokens / 4, 1);
  core.limits.output_tokens_default = options.max_output_tokens.value_or(quarter);
}

// Without a host, a shared store alone has this server's pages: it serves none itself.
server::TransferSource transfer_source(const app::TierSet* tier_set) {
  const store::PeerAddress address =
      tier_set != nullptr ? tier_set->peer_source() : store::PeerAddress();
  return {.engine_id = fmt::format("{}{:016x}", server::kEngineIdPrefix, fresh_seed()),
          .host = address.host,
          .port = address.port};
}

// Says where other servers find this one's pages, whom requests may name, and what others got.
void add_peers(const ServeOptions& options, const app::TierSet* tier_set,
               server::ServedModel& served) {
  served.transfer = transfer_source(tier_set);
  served.disaggregation = options.tiers.peer.mode;
  if (tier_set == nullptr) return;
  if (tier_set->fetches_from_peers()) {
    served.allows_source = [tier_set](const std::string& host) {
      return tier_set->allows_peer(host);
    };
  }
  if (!tier_set->peer_served()) return;
  served.peers_served = [tier_set] {
    const store::PeerServed now = tier_set->peer_served().value();
    return server::PeerCounts{.connections = now.connections,
                              .refused = now.refused,
                              .pages_leased = now.pages_leased,
                              .leases_expired = now.leases_expired,
                              .pages_sent = now.pages_sent,
                              .bytes_sent = now.bytes_sent};
  };
}

server::Json sampling_facts(const app::SamplingDefaults& defaults) {
  server::Json facts = server::Json::object();
  for (const auto& [name, value] : defaults.fields.list()) facts[name] = value;
  return facts;
}

// How large steps are, and how many threads run connections, as the device or the flags chose.
server::Json step_facts(const engine::Backend& backend, std::uint32_t http_threads) {
  const sched::SchedulerOptions& steps = backend.core_options().scheduler;
  return {{"max_num_batched_tokens", steps.batched_tokens_max},
          {"shared_step_tokens", steps.shared_step_tokens},
          {"itl_target_ms", steps.itl_target_s * 1e3},
          {"http_threads", http_threads}};
}

server::Json backend_facts(const engine::Backend& backend, const app::ServedSource& source,
                           const ServeOptions& options, std::uint32_t http_threads,
                           const app::SamplingDefaults& sampling, const app::ServedEvents* events) {
  const auto digest = backend.weights_digest();
  server::Json facts = step_facts(backend, http_threads);
  facts["weights"] = source.weights_facts();
  facts.update(
      {{"device", backend.device_name()},
       {"weights_digest", digest ? server::Json(fmt::format("{:016x}", *digest)) : nullptr},
       {"threads", backend.threads()},
       {"kv_cache_bytes", backend.kv_bytes()},
       {"kv_cache_tokens", backend.kv_tokens()},
       {"kv_cache_dtype", app::kv_choice_name(options.kv_cache_dtype, backend.page_layout())},
       {"kv_block_bytes_by_dtype", block_bytes_by_dtype(backend.page_layout())},
       {"kv_policy", options.kv_policy.name()},
       {"speculation", speculation_of(backend)},
       {"block_size", options.block_size},
       {"prefix_caching", options.prefix_caching},
       {"kv_eviction", options.kv_eviction->name},
       {"retain_budget", options.retain_share()},
       {"session_timeout", options.session_timeout_s},
       {"kv_quota", options.kv_quota},
       {"kv_quota_public", options.kv_quota_public},
       {"disaggregation_mode", server::name_of(options.tiers.peer.mode)},
       {"kv_events", events != nullptr ? events->facts() : server::Json()},
       {"sampling_defaults", sampling_facts(sampling)}});
  return facts;
}

void warn_of_long_context(const ServeOptions& options, const app::ServedSource& source) {
  if (options.max_model_len <= source.trained_context()) return;
  terminal::print_warning(app::beyond_training(options.max_model_len, source.trained_context()));
}

// Kernels of CPUs read keys and values 16 tokens at a time where they stand; of other blocks they
// copy them first.
void warn_of_odd_blocks(const ServeOptions& options, const engine::Backend& backend) {
  const bool is_on_gpu = backend.weights_digest().has_value();
  if (is_on_gpu || options.block_size % 16 == 0) return;
  terminal::print_warning(fmt::format(
      "`block_size` {}: attention on this CPU is many times slower than with a multiple "
      "of 16",
      options.block_size));
}

bool is_idle(const engine::Snapshot& now) {
  return now.sequences_running == 0 && now.requests_waiting == 0;
}

Result<std::unique_ptr<app::TierSet>> open_tier_set(const ServeOptions& options,
                                                    const app::KeySource& keys,
                                                    engine::Backend& backend,
                                                    const app::ServedSource& source) {
  if (!wants_tiers(options, source)) return std::unique_ptr<app::TierSet>();
  app::TierSetOptions tiers = options.tiers;
  tiers.peer.certificate_file = options.access.certificate_file;
  tiers.peer.certificate_key_file = options.access.certificate_key_file;
  auto opened = app::TierSet::open(
      tiers, {.page_bytes = backend.page_layout().page_bytes(),
              .block_tokens = backend.page_layout().block_tokens,
              .rows_id = backend.rows_id(),
              .model_parts = source.parts(),
              .create_copier = [&backend] { return backend.create_page_copier(); }});
  if (opened.ok() && opened.value()) opened.value()->set_owners(keys.secret(), keys.tenants());
  return opened;
}

std::vector<std::string> tier_names(const engine::Engine& engine) {
  std::vector<std::string> names;
  for (const engine::TierStats& tier : engine.tiers()) names.push_back(tier.name);
  return names;
}

void warn_of_open_door(const std::string& host) {
  terminal::print_warning(
      fmt::format("`host` {}: everyone who reaches this address has access, as admin; set "
                  "`api_keys` or `api_key`",
                  host));
}

// Stops taking requests, lets running ones finish within the shutdown timeout, and ends the others.
void let_end(const ServeOptions& options, server::Server& server, engine::Engine& engine) {
  using std::chrono::nanoseconds;
  const auto timeout = std::chrono::duration_cast<nanoseconds>(
      std::chrono::duration<double>(options.shutdown_timeout_s));
  const auto begin = std::chrono::steady_clock::now();
  server.drain();
  server.wait_for_bodies(timeout);
  const nanoseconds waited = std::chrono::steady_clock::now() - begin;
  engine.drain(std::max(nanoseconds(0), timeout - waited));
  server.stop();
}

void prepare_process() {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  mmap_large_blocks();            // long requests leave nothing behind
}

// Requests end, then what they left is kept and told.
void stop_serving(const ServeOptions& options, server::Server& server, engine::Engine& engine,
                  app::TierSet* tier_set, app::ServedEvents* events) {
  let_end(options, server, engine);
  if (tier_set != nullptr) tier_set->stop(engine);
  fmt::print("{}", cache_line(engine.snapshot(), engine.curve()));
  if (events != nullptr) events->stop();
}

// Reads the keys and says what of them is doubtful, such as that there are none.
Result<std::shared_ptr<const server::KeyRing>> read_keys(app::KeySource& source,
                                                         const std::string& host) {
  ASSIGN_OR_RETURN(std::shared_ptr<const server::KeyRing> keys, source.read());
  print_warnings(source);
  if (!keys && !is_loopback(host)) warn_of_open_door(host);
  return keys;
}

Result<std::unique_ptr<server::Server>> listen(const server::ServerOptions& network,
                                               Signals& signals,
                                               std::shared_ptr<const server::KeyRing> keys) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<server::Server> server,
      server::Server::listen(network, [&signals](int signal) { signals.raise(signal); }));
  server->set_keys(std::move(keys));
  return server;
}

Result<std::unique_ptr<app::ServedSource>> open_source(const ServeOptions& options,
                                                       const kernels::KernelSet& kernels) {
  if (options.trusts_remote_code) {
    terminal::print_warning("`trust_remote_code` does nothing: no code of a model is ever run");
  }
  ASSIGN_OR_RETURN(const std::string model, app::with_revision(options.model, options.revision));
  return app::ServedSource::open(model,
                                 {.tokenizer = options.tokenizer,
                                  .context_tokens = options.max_model_len,
                                  .overrides = options.overrides,
                                  .quantization = options.quantization},
                                 options.random, kernels);
}

// Returns the fields on which answers depend besides the request: model, numerics, KV format and a
// KV policy that is not full.
std::string system_fingerprint(const engine::Backend& backend, const ServeOptions& options) {
  const std::string& space = backend.core_options().space;
  return options.kv_policy.is_full() ? space
                                     : fmt::format("{}; {}", space, options.kv_policy.name());
}

}  // namespace

Status serve(const ServeOptions& options, const server::ServerOptions& network,
             engine::BackendOptions sizes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<app::ServedEvents> events,
                   app::ServedEvents::open(options.kv_events_config, options.block_size));
  if (events) sizes.kv_events = &events->ring();
  HeldSignal hangup(SIGHUP);  // keys that change while the server starts are read again
  app::KeySource key_source(options.access);
  ASSIGN_OR_RETURN(const std::shared_ptr<const server::KeyRing> keys,
                   read_keys(key_source, options.host));
  prepare_process();
  Signals signals;
  ASSIGN_OR_RETURN(const std::unique_ptr<server::Server> server, listen(network, signals, keys));
  hangup.release();
  ASSIGN_OR_RETURN(const kernels::KernelSet* const kernels, kernels::select_set());
  ASSIGN_OR_RETURN(const std::unique_ptr<app::ServedSource> source, open_source(options, *kernels));
  ASSIGN_OR_RETURN(const app::SamplingDefaults sampling,
                   source->sampling_defaults(options.generation));
  warn_of_long_context(options, *source);
  ASSIGN_OR_RETURN(auto chat_template, source->chat_template(options.chat_template));
  ASSIGN_OR_RETURN(auto form, find_answer_form(options, chat_template, source->tokenizer()));
  RETURN_IF_ERROR(fit_to_model(options, *source, *kernels, sizes));
  ASSIGN_OR_RETURN(const std::unique_ptr<engine::Backend> backend,
                   create_admitted_backend(options, *source, sizes));
  warn_of_odd_blocks(options, *backend);
  ASSIGN_OR_RETURN(const auto tier_set, open_tier_set(options, key_source, *backend, *source));
  if (tier_set) backend->use_tiers(tier_set->options());

  ASSIGN_OR_RETURN(const std::unique_ptr<PolicyVerdicts> policy_verdicts,
                   PolicyVerdicts::create(options, *source, *backend));
  server::StepNotifier step_notifier;
  std::atomic<const engine::Engine*> serving = nullptr;
  const SteadyClock clock;
  engine::EngineOptions engine_options = {
      .core = backend->core_options(), .tenants = key_source.tenants(), .after_step = [&] {
        step_notifier.notify();
        if (events) events->after_step();
        if (tier_set && serving != nullptr) tier_set->set_idle(is_idle(serving.load()->snapshot()));
      }};
  set_limits(options, engine_options.core);
  engine::Engine engine(engine_options, backend->cache(), backend->runner(), clock);
  if (events) events->start(engine, backend->cache());
  serving = &engine;
  if (tier_set) tier_set->start(engine);
  server::ServedModel served = {
      .names = served_names(options, *source),
      .tokenizer = source->tokenizer(),
      .chat_template = std::move(chat_template),
      .engine = engine,
      .step_notifier = step_notifier,
      .fingerprint = system_fingerprint(*backend, options),
      .created_s = std::time(nullptr),
      .facts = backend_facts(*backend, *source, options, network.threads, sampling, events.get()),
      .block_bytes = backend->page_layout().page_bytes(),
      .shows_tree = events != nullptr,
      .tiers = tier_names(engine),
      .sampling_defaults = sampling.params({.temperature = 1.0f}),
      .mask_vocabulary = app::mask_vocabulary_of(source->tokenizer(), engine.limits().vocabulary),
      .form = std::move(form),
      .normalise = server::read_normalise_rules(options.normalise_prompts).value(),
      .policy_quality = policy_verdicts.get()};
  add_peers(options, tier_set.get(), served);
  signals.start_serving();
  server->open(served);
  print_greeting({*server, served, *source, *backend, sampling, network.threads, keys != nullptr,
                  tier_set.get()});
  const KvQualityWatch quality_watch(options, *source, engine, *backend);
  reload_until_stopped(signals, key_source, engine, *server, tier_set.get());
  stop_serving(options, *server, engine, tier_set.get(), events.get());
  return ok_status();
}

}  // namespace pagoda::serve
