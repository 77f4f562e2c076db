// remote_store_bench URL PAGE_BYTES PAGES [KEY_FILE]: one JSON line of how fast pages go to a
// remote store and come back. bench/remote_store.py runs it beside redis-benchmark.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "store/remote/remote_store.h"
#include "store/store_speed.h"

namespace pagoda::store {
namespace {

Result<StoreSpeed> measure(int count, char** words) {
  RemoteOptions options;
  ASSIGN_OR_RETURN(options.url, parse_remote_url(words[1]));
  options.request_timeout_ns = 30'000'000'000;
  if (count > 4) options.key_file = words[4];
  ASSIGN_OR_RETURN(const std::unique_ptr<RemoteStore> store, RemoteStore::open(options));
  RETURN_IF_ERROR(store->await_connection(5'000'000'000));
  return measure_speed(*store, {.pages = std::strtoull(words[3], nullptr, 10),
                                .page_bytes = std::strtoull(words[2], nullptr, 10)});
}

int run(int count, char** words) {
  if (count < 4) {
    std::fprintf(stderr, "remote_store_bench URL PAGE_BYTES PAGES [KEY_FILE]\n");
    return 2;
  }
  const Result<StoreSpeed> speed = measure(count, words);
  if (!speed.ok()) {
    std::fprintf(stderr, "%s\n", speed.error().message.c_str());
    return 1;
  }
  const StoreSpeed& s = speed.value();
  std::printf(
      "{\"pages\": %zu, \"page_bytes\": %zu, \"failed\": %zu, \"write_pages_s\": %.0f, "
      "\"write_mb_s\": %.0f, \"read_pages_s\": %.0f, \"read_mb_s\": %.0f, "
      "\"write_cpu_us\": %.1f, \"read_cpu_us\": %.1f}\n",
      s.pages, s.page_bytes, s.pages_failed, s.write_pages_per_s(), s.write_bytes_per_s() * 1e-6,
      s.read_pages_per_s(), s.read_bytes_per_s() * 1e-6,
      s.write_cpu_s * 1e6 / static_cast<double>(s.pages),
      s.read_cpu_s * 1e6 / static_cast<double>(s.pages));
  return s.pages_failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace pagoda::store

int main(int count, char** words) { return pagoda::store::run(count, words); }
