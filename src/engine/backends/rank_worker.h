// RankWorker is a rank at work: it computes its part of every launch that comes, on pages of its
// own under the block ids of the serving program's cache. Rank 0 sends the results back.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "engine/backends/launch_message.h"
#include "kv/memory/page_buffer.h"
#include "model/decoder.h"
#include "ranks/channel.h"
#include "ranks/communicator.h"

namespace pagoda::engine {

class RankWorker {
 public:
  // All must outlive the worker; the communicator is the decoder's.
  RankWorker(model::Decoder& decoder, const kv::memory::PageBuffer& pages,
             const ranks::Communicator& communicator, const ranks::Channel& channel);

  // Computes launches until the channel is closed; sleeps between them. An error is why the rank
  // cannot go on, and no result of its last launch was sent.
  Status run();

 private:
  Status compute(std::span<const std::byte> message);
  Status send_result();
  Status send_logits(std::span<const std::uint32_t> rows);
  Status check_others() const;

  model::Decoder& decoder_;
  const kv::memory::PageBuffer& pages_;
  const ranks::Communicator& communicator_;
  const ranks::Channel& channel_;
  LaunchLimits limits_;
  ReadLaunch launch_;
  std::vector<std::byte> message_;
  std::vector<float> floats_;
};

// The head of a result: flags of rows that are not finite follow, then the hidden states.
struct ResultHead {
  std::uint64_t rows = 0;
  std::uint64_t hidden_floats = 0;
  std::uint64_t bytes_exchanged = 0;  // by all ranks, since they began
};

}  // namespace pagoda::engine
