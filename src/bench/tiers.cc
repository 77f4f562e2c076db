// pagoda bench tiers: how fast each tier takes pages and gives them back, beside what the same
// medium gives a plain program in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/byte_size.h"
#include "base/random.h"
#include "bench/benchmarks.h"
#include "bench/scratch_folder.h"
#include "bench/tiers_plain.h"
#include "kv/tiers/page_store.h"
#include "store/disk/disk_store.h"
#include "store/host/host_store.h"
#include "store/remote/remote_store.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kUnderWayMax = 128;  // reads asked for at once, as a long prompt does
constexpr std::int64_t kFlushNs = 120'000'000'000;

// A tier to measure. To add one: a row in tiers_of().
struct Tier {
  std::string name;
  std::function<Result<std::unique_ptr<kv::PageStore>>()> open;
  std::string reference;  // what it is compared with
  std::function<Result<TierSpeed>()> measure_plain =
      {};  // the same bytes without a store; or nothing
};

// Whose the pages of one run are: a space and an owner that nobody else has, so that a store which
// others use keeps theirs.
struct RunPages {
  kv::SpaceId space;
  kv::OwnerTag owner;
};

RunPages pages_of_this_run() {
  std::random_device device;
  const std::uint64_t number = (std::uint64_t{device()} << 32 | device()) | 1;  // 0 is the public's
  RunPages pages = {.space = kv::space_id(fmt::format("pagoda bench tiers {}", number)),
                    .owner = {}};
  std::memcpy(pages.owner.bytes.data(), &number, sizeof(number));
  return pages;
}

kv::PageLabel label_of(const RunPages& whose, std::uint64_t page, std::uint32_t block_tokens) {
  kv::PageLabel label;
  label.key.space = whose.space;
  label.owner = whose.owner;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::uint64_t bits = random_bits(1, page, i);
    std::memcpy(label.key.hash.digest.data() + 8 * i, &bits, 8);
  }
  label.tokens.resize(block_tokens);
  return label;
}

// One store, used as the cache uses it: asked without waiting, then polled.
class TierRun {
 public:
  TierRun(kv::PageStore& store, const RunPages& whose, const BenchTiersOptions& options,
          const BenchRun& run)
      : store_(store), whose_(whose), options_(options), run_(run), memory_(kUnderWayMax) {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      memory_[i].resize(options.page_bytes);
      for (std::size_t at = 0; at + 8 <= options.page_bytes; at += 8) {
        const std::uint64_t bits = random_bits(2, i, at);
        std::memcpy(memory_[i].data() + at, &bits, 8);
      }
      free_.push_back(i);
    }
  }

  Result<TierSpeed> measure(const std::string& name) {
    TierSpeed speed;
    while (!store_.stats().is_ready) std::this_thread::yield();
    const std::int64_t begin_ns = run_.clock().now_ns();
    RETURN_IF_ERROR(move_all(name + ": writing", [this](std::uint64_t page, std::size_t buffer) {
      std::memcpy(memory_[buffer].data(), &page, sizeof(page));
      return store_.write({buffer, label_of(whose_, page, options_.block_tokens), memory_[buffer]});
    }));
    RETURN_IF_ERROR(store_.flush(kFlushNs));
    const std::int64_t written_ns = run_.clock().now_ns();
    RETURN_IF_ERROR(move_all(name + ": reading", [this](std::uint64_t page, std::size_t buffer) {
      store_.read({buffer, label_of(whose_, page, options_.block_tokens), memory_[buffer]});
      return true;
    }));
    speed.write_s = seconds_between(begin_ns, written_ns);
    speed.read_s = seconds_between(written_ns, run_.clock().now_ns());
    return speed;
  }

 private:
  Status move_all(const std::string& label,
                  const std::function<bool(std::uint64_t page, std::size_t buffer)>& ask) {
    terminal::ProgressBar progress(label, "pages", run_.clock());
    std::uint64_t asked = 0;
    std::uint64_t ended = 0;
    std::vector<kv::StoreReport> reports;
    while (ended < options_.pages()) {
      RETURN_IF_ERROR(run_.check_interrupt());
      while (asked < options_.pages() && !free_.empty() && ask(asked, free_.back())) {
        free_.pop_back();
        ++asked;
      }
      reports.clear();
      store_.poll(reports);
      for (const kv::StoreReport& report : reports) {
        if (report.fault != kv::StoreFault::kNone) {
          return Error{ErrorCode::kIo, fmt::format("{}: a page ended with \"{}\"", label,
                                                   kv::name_of(report.fault))};
        }
        free_.push_back(report.ticket);
        ++ended;
      }
      if (reports.empty()) std::this_thread::sleep_for(std::chrono::microseconds(50));
      progress.show(ended, options_.pages());
    }
    return ok_status();
  }

  kv::PageStore& store_;
  const RunPages whose_;
  const BenchTiersOptions& options_;
  const BenchRun& run_;
  std::vector<std::vector<std::byte>> memory_;  // a page for each request under way
  std::vector<std::size_t> free_;
};

Result<Tier> remote_tier(const BenchTiersOptions& options, const BenchRun& run) {
  store::RemoteOptions remote;
  ASSIGN_OR_RETURN(remote.url, store::parse_remote_url(options.remote));
  remote.request_timeout_ns = kFlushNs;
  Tier tier = {.name = remote.url.shown(),
               .open = [remote]() -> Result<std::unique_ptr<kv::PageStore>> {
                 ASSIGN_OR_RETURN(std::unique_ptr<store::RemoteStore> opened,
                                  store::RemoteStore::open(remote));
                 return std::unique_ptr<kv::PageStore>(std::move(opened));
               },
               .reference = ""};
  if (remote.url.kind == store::RemoteKind::kRedis && !remote.url.tls) {
    tier.reference = "redis-benchmark";
    tier.measure_plain = [url = remote.url, &options, &run] {
      return measure_redis(url, options.plain(), run);
    };
  }
  return tier;
}

Result<std::vector<Tier>> tiers_of(const BenchTiersOptions& options, const BenchRun& run,
                                   const fs::path& folder) {
  const auto open_host = [&options]() -> Result<std::unique_ptr<kv::PageStore>> {
    ASSIGN_OR_RETURN(
        std::unique_ptr<store::HostStore> host,
        store::HostStore::open({.bytes_max = (options.pages() + 1) * options.page_bytes,
                                .page_bytes = options.page_bytes},
                               kv::memory_copier(store::host_copy_threads())));
    return std::unique_ptr<kv::PageStore>(std::move(host));
  };
  const auto plain_copy = [&options, &run] { return measure_memcpy(options.plain(), run); };
  const auto open_disk = [&options, folder](const std::string& name, bool use_uring) {
    return [&options, folder, name, use_uring]() -> Result<std::unique_ptr<kv::PageStore>> {
      store::DiskOptions disk;
      disk.path = (folder / name).string();
      disk.page_bytes = options.page_bytes;
      disk.block_tokens = options.block_tokens;
      disk.bytes_max = (options.pages() + 1) * (options.page_bytes + 4 * store::kIoAlignment) +
                       4 * store::kIoAlignment;
      disk.use_uring = use_uring;
      ASSIGN_OR_RETURN(std::unique_ptr<store::DiskStore> opened, store::DiskStore::open(disk));
      return std::unique_ptr<kv::PageStore>(std::move(opened));
    };
  };
  const auto dd = [&options, &run, folder] {
    return measure_dd(folder.string(), options.plain(), run);
  };
  std::vector<Tier> tiers = {{"host memory", open_host, "memcpy", plain_copy},
                             {"disk, io_uring", open_disk("uring", true), "dd, direct", dd},
                             {"disk, threads", open_disk("threads", false), "dd, direct", dd}};
  if (!options.remote.empty()) {
    ASSIGN_OR_RETURN(Tier remote, remote_tier(options, run));
    tiers.push_back(std::move(remote));
  }
  return tiers;
}

}  // namespace

Result<terminal::BenchReport> bench_tiers(const BenchTiersOptions& options, const BenchRun& run) {
  if (options.page_bytes % store::kIoAlignment != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`page_bytes`: {} is no multiple of {}, which dd needs for direct I/O",
                             options.page_bytes, store::kIoAlignment)};
  }
  terminal::BenchReport report("tiers", {{"tier", "tier"},
                                         {"operation", "operation"},
                                         {"seconds", "seconds", 2},
                                         {"megabytes_per_second", "MB/s", 0},
                                         {"pages_per_second", "pages/s", 0},
                                         {"reference", "beside"},
                                         {"reference_megabytes_per_second", "MB/s", 0},
                                         {"share", "share", 2}});
  report.add_setting("pages", options.pages());
  report.add_setting("page_bytes", options.page_bytes);
  const ScratchFolder scratch(options.folder);
  fs::create_directories(scratch.path());
  const double megabytes = static_cast<double>(options.pages() * options.page_bytes) * 1e-6;
  ASSIGN_OR_RETURN(const std::vector<Tier> tiers, tiers_of(options, run, scratch.path()));
  for (const Tier& tier : tiers) {
    TierSpeed plain;
    if (tier.measure_plain) {
      ASSIGN_OR_RETURN(plain, tier.measure_plain());
    }
    TierSpeed speed;
    {
      ASSIGN_OR_RETURN(const std::unique_ptr<kv::PageStore> store, tier.open());
      const RunPages whose = pages_of_this_run();
      const Result<TierSpeed> measured = TierRun(*store, whose, options, run).measure(tier.name);
      const Result<kv::Removal> removed = store->remove(whose.owner);
      if (!measured.ok()) return measured.error();
      if (!removed.ok()) return removed.error();
      speed = measured.value();
    }
    for (const auto& [name, ours_s, plain_s] :
         {std::tuple{"write, durable", speed.write_s, plain.write_s},
          std::tuple{"read", speed.read_s, plain.read_s}}) {
      const bool compared = plain_s > 0;
      using terminal::ReportValue;
      report.add_row({tier.name, name, ours_s, megabytes / ours_s,
                      static_cast<double>(options.pages()) / ours_s,
                      compared ? ReportValue(tier.reference) : ReportValue(),
                      compared ? ReportValue(megabytes / plain_s) : ReportValue(),
                      compared ? ReportValue(plain_s / ours_s) : ReportValue()});
    }
  }
  return report;
}

}  // namespace pagoda::bench
