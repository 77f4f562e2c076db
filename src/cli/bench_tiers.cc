// The flags of pagoda bench tiers.
#include "bench/benchmarks.h"
#include "cli/bench_flags.h"

namespace pagoda::cli {
namespace {

constexpr const char* kBenchTiersExamples =
    "Examples:\n"
    "  pagoda bench tiers\n"
    "  pagoda bench tiers --folder /mnt/fast --size 8GiB\n"
    "  pagoda bench tiers --size 256MiB --page-bytes 1048576 --json\n"
    "  pagoda bench tiers --remote redis://127.0.0.1:6379\n"
    "Writes so many bytes of pages into each tier, waits until they are durable, and reads them "
    "back with 128 reads asked for at once. Beside it what the same medium gives a plain program: "
    "memcpy; dd with direct I/O and blocks of a page's size; redis-benchmark, which checks "
    "nothing. "
    "Files lie in a new folder, which is removed; of a remote store the pages that were written "
    "are removed, and nobody else's.";

}  // namespace

void add_bench_tiers(const BenchCommand& bench) {
  const CommandSpec command = bench.app.add_subcommand(
      "tiers", "write and read speed of each tier: host memory, disk, remote");
  const auto options = std::make_shared<bench::BenchTiersOptions>();
  command.add_option("--folder", options->folder,
                     "on the disk to be measured (default: the current folder)");
  command.add_option("--remote", options->remote,
                     "a store to be measured as well: redis://… or memcached://…");
  command.add_byte_size("--size", options->bytes, "bytes of pages (default 1GiB)", false);
  command.add_byte_size("--page-bytes", options->page_bytes,
                        "of a page, a multiple of 4096 (default 368640: SmolLM2, 16 tokens)",
                        false);
  command.add_flag("--json", options->json, "one JSON object on stdout instead of a table");
  command.footer(kBenchTiersExamples);
  set_benchmark(command, bench, options, [options](const bench::BenchRun& run) {
    return bench::bench_tiers(*options, run);
  });
}

}  // namespace pagoda::cli
