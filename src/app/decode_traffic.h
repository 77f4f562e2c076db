// Bytes that a decode step must read at the least:
//
//   weights   every matrix once, whatever the batch; of the embedding only the rows looked up,
//             which are not counted
//   KV        for each sequence the keys and values its query sees: of a layer with a window no
//             more than the window
#pragma once

#include <cstdint>

#include "kv/memory/page_layout.h"
#include "model/config.h"
#include "model/weights.h"

namespace pagoda::app {

// By one token: of a mixture's experts those that it chooses. More tokens may read more of them.
std::uint64_t weight_bytes_read(const model::Weights& weights, const model::Config& config);

// Keys and values of one token, all layers.
std::uint64_t kv_bytes_per_token(const model::Config& config, kv::memory::Elements elements);

// By one query behind which, itself included, stand `tokens` tokens.
std::uint64_t kv_bytes_read(const model::Config& config, kv::memory::Elements elements,
                            std::uint64_t tokens);

}  // namespace pagoda::app
