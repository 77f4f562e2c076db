#include "app/tier_set.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "app/cache_folder.h"
#include "base/byte_size.h"
#include "server/access/tenant_salt.h"
#include "store/disk/space_names.h"
#include "store/host/host_store.h"
#include "store/staged/staged_store.h"
#include "terminal/messages.h"

namespace pagoda::app {
namespace {

// The greeting waits this long for a remote store's first connection.
constexpr std::chrono::seconds kFirstConnection{1};

Result<std::uint64_t> read_size(const char* field, const std::string& text) {
  Result<std::uint64_t> bytes = parse_byte_size(text);
  if (bytes.ok()) return bytes;
  return Error{bytes.error().code, fmt::format("`{}`: {}", field, bytes.error().message)};
}

Result<std::uint64_t> disk_bytes(const TierSetOptions& flags, const std::string& path) {
  if (!flags.disk_size.empty()) return read_size("kv_disk_size", flags.disk_size);
  std::error_code error;
  // The folder itself is made by the store, for its owner alone.
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  std::filesystem::create_directories(parent, error);
  const bool is_there = std::filesystem::is_directory(path, error);
  const std::filesystem::space_info room =
      std::filesystem::space(is_there ? std::filesystem::path(path) : parent, error);
  if (error) return Error{ErrorCode::kIo, fmt::format("{}: {}", path, error.message())};
  return store::default_disk_bytes(room.available, store::bytes_taken(path));
}

// How fast this model was here the last time: so that the first request after a start knows.
std::string rate_path() { return cache_folder() + "/prefill_rates"; }

std::map<std::string, double> read_rates() {
  std::map<std::string, double> rates;
  std::ifstream file(rate_path());
  std::string key;
  for (double rate = 0; file >> key >> rate;) rates[key] = rate;
  return rates;
}

void write_rate(const std::string& key, double rate) {
  constexpr std::size_t kRatesMax = 64;
  std::map<std::string, double> rates = read_rates();
  if (rates.size() >= kRatesMax) rates.clear();
  rates[key] = rate;
  std::error_code ignored;
  std::filesystem::create_directories(cache_folder(), ignored);
  const std::string fresh = fmt::format("{}.{}", rate_path(), getpid());
  {
    std::ofstream file(fresh, std::ios::trunc);
    for (const auto& [name, value] : rates) file << name << ' ' << value << '\n';
    if (!file.flush()) return;
  }
  std::filesystem::rename(fresh, rate_path(), ignored);
}

std::string rate_key(const TierNeeds& needs) {
  std::string key =
      needs.rows_id + "@" + std::filesystem::path(needs.model_parts[0].path).filename().string();
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

}  // namespace

Result<std::unique_ptr<TierSet>> TierSet::open(const TierSetOptions& flags,
                                               const TierNeeds& needs) {
  std::unique_ptr<TierSet> tier_set(new TierSet(flags, needs));
  RETURN_IF_ERROR(tier_set->open_host());
  RETURN_IF_ERROR(tier_set->open_disk());
  RETURN_IF_ERROR(tier_set->open_remote());
  RETURN_IF_ERROR(tier_set->open_peer());
  if (tier_set->stores_.empty()) return std::unique_ptr<TierSet>();
  return tier_set;
}

Status TierSet::open_host() {
  ASSIGN_OR_RETURN(const std::uint64_t bytes, read_size("kv_host_size", flags_.host_size));
  if (bytes == 0) return ok_status();
  if (bytes < needs_.page_bytes) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("`kv_host_size`: is {}, a page takes {}",
                             format_byte_size(static_cast<double>(bytes)),
                             format_byte_size(static_cast<double>(needs_.page_bytes)))};
  }
  ASSIGN_OR_RETURN(std::unique_ptr<kv::PageCopier> copier, needs_.create_copier());
  if (!copier) copier = kv::memory_copier(store::host_copy_threads());
  Result<std::unique_ptr<store::HostStore>> host = store::HostStore::open(
      {.bytes_max = bytes, .page_bytes = needs_.page_bytes}, std::move(copier));
  if (!host.ok()) {
    return Error{host.error().code, fmt::format("`kv_host_size`: {}", host.error().message)};
  }
  stores_.push_back(std::move(host).value());
  lines_.push_back(
      fmt::format("KV in main memory: {}", format_byte_size(static_cast<double>(bytes))));
  return ok_status();
}

Status TierSet::open_disk() {
  if (flags_.disk == "off") return ok_status();
  const std::string path = flags_.disk.empty() ? cache_folder() + "/kv" : flags_.disk;
  const bool asked_for = !flags_.disk.empty();
  const Result<std::uint64_t> bytes = disk_bytes(flags_, path);
  if (!bytes.ok() && !flags_.disk_size.empty()) return bytes.error();
  Result<std::unique_ptr<store::DiskStore>> disk =
      bytes.ok() ? store::DiskStore::open({.path = path,
                                           .bytes_max = bytes.value(),
                                           .page_bytes = needs_.page_bytes,
                                           .block_tokens = needs_.block_tokens,
                                           .key_file = flags_.key_file,
                                           .bytes_per_s_max = flags_.disk_bytes_per_s})
                 : bytes.error();
  if (!disk.ok()) {
    if (asked_for && disk.error().code == ErrorCode::kInvalidArgument) return disk.error();
    if (asked_for && disk.error().code == ErrorCode::kIo) {
      return Error{ErrorCode::kIo, fmt::format("`kv_disk`: {}", disk.error().message)};
    }
    terminal::print_warning(fmt::format("KV is not kept on disk: {}", disk.error().message));
    return ok_status();
  }
  disk_ = disk.value().get();
  disk_path_ = path;
  lines_.push_back(fmt::format("KV on disk: {}, at most {} ({}); `kv_disk=off` for none", path,
                               format_byte_size(static_cast<double>(bytes.value())),
                               disk_->io_name()));
  return add(std::move(disk).value());
}

Status TierSet::open_remote() {
  if (flags_.remote.empty()) return ok_status();
  store::RemoteOptions options;
  ASSIGN_OR_RETURN(options.url, store::parse_remote_url(flags_.remote));
  options.ttl_s = static_cast<std::uint32_t>(flags_.remote_ttl_s);
  options.request_timeout_ns = static_cast<std::int64_t>(flags_.remote_timeout_s * 1e9);
  options.key_file = flags_.key_file;
  options.tls_ca_file = flags_.ca_file;
  ASSIGN_OR_RETURN(std::unique_ptr<store::RemoteStore> remote, store::RemoteStore::open(options));
  remote_ = remote.get();
  remote_shown_ = options.url.shown();
  return add(std::move(remote));
}

Status TierSet::open_peer() {
  ASSIGN_OR_RETURN(PeerSet peers, open_peers(flags_.peer, flags_.key_file, needs_));
  listener_ = std::move(peers.listener);
  peer_store_ = peers.store.get();
  return peers.store ? add(std::move(peers.store)) : ok_status();
}

Status TierSet::add(std::unique_ptr<kv::PageStore> store) {
  ASSIGN_OR_RETURN(std::unique_ptr<kv::PageCopier> copier, needs_.create_copier());
  if (copier) {
    ASSIGN_OR_RETURN(store, store::StagedStore::open(std::move(store), std::move(copier),
                                                     {.page_bytes = needs_.page_bytes}));
  }
  stores_.push_back(std::move(store));
  return ok_status();
}

engine::TierOptions TierSet::options() {
  engine::TierOptions made;
  made.stores = stores();
  made.write = flags_.write;
  made.load = flags_.load;
  made.lessee = listener_.get();
  made.lease_share = flags_.peer.lease_share;
  made.owner_tag = [this](kv::OwnerId owner) { return owner_tag(owner); };
  made.is_model_unchanged = [this] { return space_.is_model_unchanged(); };
  const std::map<std::string, double> rates = read_rates();
  const auto known = rates.find(rate_key(needs_));
  if (known != rates.end()) made.tokens_per_second = known->second;
  return made;
}

void TierSet::set_owners(const std::string& secret,
                         const std::vector<engine::NamedTenant>& tenants) {
  const auto tag_of = [&](const std::string& name) {
    const std::string bytes = server::tenant_tag(secret, name);
    kv::OwnerTag tag;
    std::memcpy(tag.bytes.data(), bytes.data(), tag.bytes.size());
    return tag;
  };
  std::vector<kv::OwnerTag> owners = {tag_of("")};
  for (const engine::NamedTenant& tenant : tenants) owners.push_back(tag_of(tenant.name));
  deployment_ = store::deployment_id(secret);
  if (peer_store_ != nullptr) peer_store_->set_deployment(deployment_);
  const std::lock_guard lock(owners_mutex_);
  owners_ = std::move(owners);
}

kv::OwnerTag TierSet::owner_tag(kv::OwnerId owner) const {
  const std::lock_guard lock(owners_mutex_);
  return owner.value() < owners_.size() ? owners_[owner.value()] : kv::OwnerTag{};
}

// A description that cannot be written is missed by people alone.
void TierSet::start(engine::Engine& engine) {
  space_.start(engine, [this](const kv::SpaceId& space) {
    if (disk_ == nullptr || !disk_->takes_writes()) return;
    const Status noted = store::note_space(disk_path_, space, needs_.rows_id);
    if (!noted.ok()) terminal::print_warning(noted.error().message);
  });
  if (listener_) listener_->start(engine, deployment_);
}

void TierSet::stop(engine::Engine& engine) {
  if (listener_) listener_->stop();
  const auto began = std::chrono::steady_clock::now();
  const auto timeout = std::chrono::duration<double>(flags_.stop_s);
  const auto timeout_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(timeout);
  const auto left = [&] { return timeout_ns - (std::chrono::steady_clock::now() - began); };
  // The address of pages, where it is in doubt, may become sure meanwhile.
  const bool is_named = space_.wait(timeout_ns);
  const double rate = engine.snapshot().prompt_tokens_per_second;
  if (rate > 0) write_rate(rate_key(needs_), rate);
  const bool all = engine.offload_all(left()) && is_named;
  space_.stop();
  for (const auto& store : stores_) {
    const Status durable = store->flush(std::max<std::int64_t>(left().count(), 1'000'000'000));
    if (!durable.ok()) terminal::print_warning(durable.error().message);
    const bool is_written = flags_.write != engine::WriteMode::kOff && store->name() != "peer";
    if (is_written && !store->takes_writes()) {
      terminal::print_warning(
          fmt::format("KV is not written to {}: {}", store->name(), store->stats().condition));
    }
  }
  if (!all) {
    terminal::print_warning(fmt::format(
        "not all KV was written within {} s; `kv_stop_seconds` gives it more", flags_.stop_s));
  }
}

std::vector<kv::PageStore*> TierSet::stores() const {
  std::vector<kv::PageStore*> stores;
  for (const auto& store : stores_) stores.push_back(store.get());
  return stores;
}

std::string TierSet::greeting() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  if (remote_ != nullptr) text += remote_line() + "\n";
  return text + peer_lines(flags_.peer, peer_store_, listener_.get());
}

bool TierSet::allows_peer(const std::string& host) const {
  return peer_store_ != nullptr && peer_store_->allows(host);
}

store::PeerAddress TierSet::peer_source() const {
  return app::peer_source(flags_.peer, listener_.get());
}

std::optional<store::PeerServed> TierSet::peer_served() const {
  return listener_ ? std::optional(listener_->served()) : std::nullopt;
}

Status TierSet::reload_certificate() {
  return listener_ ? listener_->reload_certificate() : ok_status();
}

std::string TierSet::remote_line() const {
  const auto deadline = std::chrono::steady_clock::now() + kFirstConnection;
  kv::StoreStats now = remote_->stats();
  while (!now.is_ready && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    now = remote_->stats();
  }
  if (now.is_on) return fmt::format("KV in {} (connected)", remote_shown_);
  const std::string why =
      now.condition.empty() ? fmt::format("{}: no connection yet", remote_shown_) : now.condition;
  return fmt::format("no KV in {}; it is tried again in the background", why);
}

void TierSet::set_idle(bool is_idle) {
  if (disk_ != nullptr) disk_->set_idle(is_idle);
}

}  // namespace pagoda::app
