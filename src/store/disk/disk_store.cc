#include "store/disk/disk_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "store/disk/disk_io_worker.h"
#include "store/disk/posix_files.h"

namespace pagoda::store {

using kv::StoreFault;

namespace {

// One ring keeps a disk busy; the other workers check and copy meanwhile. On a crowded host two
// threads gave a third of the speed of sixteen, since each waits its turn with its completions.
constexpr std::size_t kUringWorkers = 4;
constexpr std::size_t kRingDepth = 16;
constexpr std::size_t kPlainWorkers = 16;

Status prepare_folder(FileLayer& layer, bool& is_read_only) {
  const auto refused = [&](int error) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", layer.path(), error_text(error))};
  };
  if (!is_read_only) {
    const int made = layer.make_folder();
    if (made == EROFS) is_read_only = true;
    if (made != 0 && made != EROFS) return refused(made);
  }
  is_read_only =
      is_read_only || layer.open(std::string(kLockName), OpenMode::kReadWrite).error == EROFS;
  const int locked = layer.lock(is_read_only);
  if (locked == EWOULDBLOCK) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{}: another process uses this store", layer.path())};
  }
  if (locked != 0) return refused(locked);
  return ok_status();
}

Status check_options(const DiskOptions& options) {
  if (options.page_bytes == 0 || options.block_tokens == 0 ||
      options.block_tokens > kv::kBlockTokensMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: pages of {} bytes and {} tokens; at most {} tokens", options.path,
                             options.page_bytes, options.block_tokens, kv::kBlockTokensMax)};
  }
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<DiskStore>> DiskStore::open(const DiskOptions& options) {
  return open(options, std::make_unique<PosixFiles>(options.path));
}

Result<std::unique_ptr<DiskStore>> DiskStore::open(const DiskOptions& options,
                                                   std::unique_ptr<FileLayer> layer) {
  RETURN_IF_ERROR(check_options(options));
  std::optional<SlotCipher> cipher;
  if (!options.key_file.empty()) {
    ASSIGN_OR_RETURN(const SecretKey key, read_key_file(options.key_file));
    cipher.emplace(key);
  }
  bool is_read_only = options.read_only;
  RETURN_IF_ERROR(prepare_folder(*layer, is_read_only));
  const SlotCodec codec({options.page_bytes, options.block_tokens}, cipher);
  ASSIGN_OR_RETURN(SlabFiles files, is_read_only
                                        ? SlabFiles::open_read_only(*layer, codec)
                                        : SlabFiles::open(*layer, codec, options.bytes_max));
  auto slab = std::make_unique<Slab>(std::move(files), codec, wall_clock_us);
  std::unique_ptr<DiskStore> store(new DiskStore(options, std::move(layer), std::move(slab)));
  store->start();
  return store;
}

DiskStore::DiskStore(const DiskOptions& options, std::unique_ptr<FileLayer> layer,
                     std::unique_ptr<Slab> slab)
    : options_(options),
      layer_(std::move(layer)),
      slab_(std::move(slab)),
      throttle_(options.bytes_per_s_max),
      queue_({.writes_waiting_max = options.writes_waiting_max,
              .request_limit_ns = options.request_limit_ns,
              .lookup_limit_ns = options.lookup_limit_ns},
             [this](kv::StoreTicket ticket, StoreFault fault, std::size_t keys_found) {
               push(ticket, fault, keys_found);
             }),
      health_(options.failures_max, options.retry_after_ns) {}

void DiskStore::start() {
  const std::size_t slot_bytes = slab_->codec().geometry().slot_bytes();
  const std::size_t buffers = std::max<std::size_t>(options_.staging_bytes_max / slot_bytes, 1);
  std::vector<std::unique_ptr<SlotIo>> ios;
  if (options_.use_uring && slab_->files().slab().descriptor() >= 0) {
    while (ios.size() < std::min(kUringWorkers, buffers)) {
      std::unique_ptr<SlotIo> ring = make_uring_io(kRingDepth);
      if (ring == nullptr) break;
      ios.push_back(std::move(ring));
    }
  }
  has_uring_ = !ios.empty();
  while (!has_uring_ && ios.size() < std::min(kPlainWorkers, buffers))
    ios.push_back(make_plain_io());
  const std::size_t depth = std::max<std::size_t>(buffers / ios.size(), 1);
  for (std::unique_ptr<SlotIo>& io : ios) {
    io_workers_.emplace_back(
        [worker = std::make_shared<DiskIoWorker>(*this, std::move(io), depth)] { worker->run(); });
  }
  maintenance_ = std::thread([this] { maintain(); });
}

DiskStore::~DiskStore() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  work_.notify_all();
  maintenance_due_.notify_all();
  for (std::thread& worker : io_workers_) worker.join();
  maintenance_.join();
  slab_->close();
}

std::string DiskStore::io_name() const {
  return fmt::format("{}, {}",
                     has_uring_ ? "io_uring"
                                : fmt::format("{} thread{}", io_workers_.size(),
                                              io_workers_.size() == 1 ? "" : "s"),
                     slab_->files().slab().is_direct() ? "direct" : "through the page cache");
}

bool DiskStore::is_on(bool is_write) const {
  const std::lock_guard lock(mutex_);
  const std::int64_t now_ns = clock_.now_ns();
  return is_write ? health_.can_write(now_ns) : health_.can_read(now_ns);
}

std::optional<std::size_t> DiskStore::find(kv::StoreTicket ticket,
                                           std::span<const kv::PageKey> keys) {
  if (!slab_->is_ready()) {
    const std::lock_guard lock(mutex_);
    // Asked again under the lock: once the index is there, load_index() answers those that wait,
    // and nobody would answer one that comes later.
    if (!slab_->is_ready()) {
      queue_.put_lookup(ticket, keys, clock_.now_ns());
      work_.notify_one();  // a worker must see to it that the lookup is not reported too late
      return std::nullopt;
    }
  }
  return is_on(false) ? slab_->find(keys) : 0;
}

bool DiskStore::keeps(const kv::PageKey& key) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.is_writing(key)) return true;
  }
  return slab_->keeps(key);
}

void DiskStore::read(kv::PageRead read) {
  ASSERT(read.page.size() == options_.page_bytes, "a store's pages have one size");
  const std::int64_t now_ns = clock_.now_ns();
  const std::lock_guard lock(mutex_);
  queue_.put_read(std::move(read), now_ns);
  work_.notify_one();
}

bool DiskStore::write(kv::PageWrite write) {
  ASSERT(write.page.size() == options_.page_bytes, "a store's pages have one size");
  ASSERT(write.label.tokens.size() <= options_.block_tokens, "a store's blocks have one size");
  const std::int64_t now_ns = clock_.now_ns();
  if (!slab_->is_ready() || slab_->files().is_read_only()) return false;
  const std::lock_guard lock(mutex_);
  if (!health_.can_write(now_ns) || queue_.is_full_of_writes()) return false;
  if (health_.take_growth(now_ns)) slab_->allow_growth();
  queue_.put_write(std::move(write), now_ns);
  work_.notify_one();
  return true;
}

bool DiskStore::takes_writes() const {
  if (slab_->files().is_read_only()) return false;
  const std::lock_guard lock(mutex_);
  const std::int64_t now_ns = clock_.now_ns();
  return health_.has_index() && health_.can_write(now_ns) && health_.can_read(now_ns);
}

void DiskStore::cancel(std::span<const kv::StoreTicket> tickets) {
  const std::lock_guard lock(mutex_);
  queue_.cancel_reads(tickets);
  work_.notify_one();
}

void DiskStore::poll(std::vector<kv::StoreReport>& reports) {
  const std::lock_guard lock(mutex_);
  queue_.expire(clock_.now_ns());
  reports.insert(reports.end(), reports_.begin(), reports_.end());
  reports_.clear();
  needs_notify_ = false;
}

void DiskStore::on_report(std::function<void()> notify) {
  const std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
}

std::unique_ptr<DiskRequest> DiskStore::take(bool may_wait) {
  Lock lock(mutex_);
  while (!is_stopping_) {
    queue_.expire(clock_.now_ns());
    if (needs_notify_) {
      unlock_and_notify(lock);
      lock.lock();
      continue;
    }
    if (std::unique_ptr<DiskRequest> request = queue_.next()) {
      if (is_maintenance_idle_) maintenance_due_.notify_one();
      return request;
    }
    if (!may_wait) return nullptr;
    if (queue_.has_lookups()) {
      work_.wait_for(lock, std::chrono::milliseconds(50));
    } else {
      work_.wait(lock);
    }
  }
  return nullptr;
}

bool DiskStore::claim_bytes(DiskRequest& request) {
  const std::lock_guard lock(mutex_);
  return DiskQueue::claim_bytes(request);
}

void DiskStore::release_bytes(DiskRequest& request) {
  const std::lock_guard lock(mutex_);
  DiskQueue::release_bytes(request);
}

void DiskStore::finish(DiskRequest& request, StoreFault fault, int error) {
  Lock lock(mutex_);
  health_.note_request(request.is_write, fault, error, clock_.now_ns());
  if (fault == StoreFault::kNone) {
    (request.is_write ? counted_.pages_written : counted_.pages_read) += 1;
    (request.is_write ? counted_.bytes_written : counted_.bytes_read) += options_.page_bytes;
  }
  if (slab_->has_changes()) note_changes();
  queue_.end(request, fault);
  ended_.notify_all();
  unlock_and_notify(lock);
}

void DiskStore::note_changes() {
  if (changed_since_ns_ != 0 || slab_->files().is_read_only()) return;
  changed_since_ns_ = clock_.now_ns();
  maintenance_due_.notify_one();
}

void DiskStore::push(kv::StoreTicket ticket, StoreFault fault, std::size_t keys_found) {
  reports_.push_back({ticket, fault, keys_found, clock_.now_ns()});
  if (fault != StoreFault::kNone) ++counted_.faults[static_cast<std::size_t>(fault)];
  needs_notify_ = true;
  ended_.notify_all();
}

void DiskStore::unlock_and_notify(Lock& lock) {
  const bool needs_notify = std::exchange(needs_notify_, false);
  const std::function<void()> notify = needs_notify ? notify_ : nullptr;
  lock.unlock();
  if (notify) notify();
}

}  // namespace pagoda::store
