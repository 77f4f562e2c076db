#include "app/rank_program.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "app/rank_setup.h"
#include "base/thread_pool.h"
#include "engine/backends/rank_worker.h"
#include "kernels/select.h"
#include "kv/memory/page_buffer.h"
#include "model/decoder.h"

namespace pagoda::app {
namespace {

using ranks::MessageKind;

// Signs of life while weights are packed, at most one a second.
class PackLife {
 public:
  explicit PackLife(const ranks::Channel& channel) : channel_(channel) {}

  void show() {
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_ < std::chrono::seconds(1)) return;
    shown_ = now;
    static_cast<void>(channel_.send(MessageKind::kAlive, std::span<const std::byte>()));
  }

 private:
  const ranks::Channel& channel_;
  std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
};

// Answers with what was loaded, and allocates as many pages as the serving program then says.
Result<kv::memory::PageBuffer> allocate_pages(const ranks::Channel& channel, const RankReady& ready,
                                              const kv::memory::PageLayout& layout) {
  RETURN_IF_ERROR(channel.send(MessageKind::kReady, write_ready(ready)));
  ASSIGN_OR_RETURN(const ranks::Bytes asked, channel.receive(MessageKind::kPages));
  std::uint32_t pages = 0;
  if (asked.size() == sizeof pages) std::memcpy(&pages, asked.data(), sizeof pages);
  if (pages == 0) return Error{ErrorCode::kCorrupt, "no number of pages came"};
  return kv::memory::PageBuffer::allocate(layout, pages);
}

}  // namespace

Status run_rank(ranks::Communicator& communicator, const ranks::Channel& channel,
                const std::function<void(std::chrono::milliseconds)>& on_limit) {
  ASSIGN_OR_RETURN(const ranks::Bytes text, channel.receive(MessageKind::kSetup));
  ASSIGN_OR_RETURN(const RankSetup setup,
                   read_setup({reinterpret_cast<const char*>(text.data()), text.size()}));
  on_limit(setup.limit);
  ASSIGN_OR_RETURN(const kernels::KernelSet* const kernels, kernels::select_set(setup.kernel_set));
  ASSIGN_OR_RETURN(const gguf::File file, open_loadable(setup.model, *kernels, setup.load));
  ASSIGN_OR_RETURN(model::Config config, model::read_config(file));
  if (setup.load.context_tokens > 0) model::serve_context(setup.load.context_tokens, config);
  ASSIGN_OR_RETURN(const model::Weights weights, model::load_weights(file, config, *kernels));
  ThreadPool pool(setup.threads);
  PackLife life(channel);
  model::Decoder decoder(config, weights, *kernels, pool,
                         {.rows_max = setup.rows_max,
                          .kv_cache_dtype = setup.kv_cache_dtype,
                          .block_tokens = setup.block_tokens,
                          .on_pack = [&](std::size_t, std::size_t) { life.show(); },
                          .communicator = &communicator});
  file.release_pages();
  const RankReady ready = {.identity = identity_of(file, config, *kernels, setup),
                           .facts = {.page_bytes = decoder.page_layout().page_bytes(),
                                     .weight_bytes = decoder.packed_bytes()}};
  ASSIGN_OR_RETURN(const kv::memory::PageBuffer pages,
                   allocate_pages(channel, ready, decoder.page_layout()));
  RETURN_IF_ERROR(channel.send(MessageKind::kReady, std::span<const std::byte>()));
  return engine::RankWorker(decoder, pages, communicator, channel).run();
}

}  // namespace pagoda::app
