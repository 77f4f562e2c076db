// A rank: loads its part of a model as the serving program says, and computes launches until that
// is gone.
#pragma once

#include <chrono>
#include <functional>

#include "base/result.h"
#include "ranks/channel.h"
#include "ranks/communicator.h"

namespace pagoda::app {

// `on_limit` is told how long waits for other ranks may take. An error is why the rank cannot go
// on.
Status run_rank(ranks::Communicator& communicator, const ranks::Channel& channel,
                const std::function<void(std::chrono::milliseconds)>& on_limit);

}  // namespace pagoda::app
