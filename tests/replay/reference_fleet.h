// A fleet as its rules read, slowly: time goes on by a millisecond, caches are maps of whole
// prefixes, and everything is looked at again at every moment. A block has one token and one byte,
// and all rates are whole milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "replay/reference_caches.h"

namespace pagoda::replay {

struct PlainRequest {
  std::int64_t at_ms = 0;
  Ids ids;
  std::int64_t answer_ms = 0;  // of decoding
};

struct PlainFleetRules {
  std::size_t servers = 1;
  std::size_t capacity = 4;         // blocks of each server
  std::int64_t compute_ms = 4;      // of a block
  std::optional<std::size_t> host;  // blocks of main memory of each server
  std::int64_t host_ms = 1;         // of a block, each way
  bool exact = false;               // else round-robin
};

struct PlainFleetResult {
  std::vector<std::int64_t> ttft_ms;
  std::uint64_t found = 0;      // blocks
  std::uint64_t from_host = 0;  // of these
  std::uint64_t host_read = 0;
  std::uint64_t host_written = 0;
  std::uint64_t waited_for_room = 0;  // moments at which a prompt could not begin
};

class PlainFleet {
 public:
  PlainFleet(std::vector<PlainRequest> requests, const PlainFleetRules& rules)
      : requests_(std::move(requests)), rules_(rules), servers_(rules.servers) {
    result_.ttft_ms.resize(requests_.size());
  }

  PlainFleetResult run() {
    std::size_t served = 0;
    for (now_ = 0; served < requests_.size(); ++now_) {
      for (bool more = true; more;) {
        more = false;
        const std::optional<Due> due = first_due();
        if (due) {
          more = true;
          dues_.erase(due->order);
          served += act(*due);
        }
      }
      for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (requests_[i].at_ms != now_) continue;
        arrive(i);
        settle();
      }
    }
    return result_;
  }

 private:
  enum class What { kLoaded, kComputed, kEnded, kWritten };
  struct Due {
    std::int64_t at_ms;
    std::uint64_t order;
    What what;
    std::size_t request;
    std::size_t server;
  };
  struct Block {
    int holders = 0;
    std::uint64_t last_use = 0;
  };
  struct Job {
    std::size_t memory = 0;  // what it found when it came
    std::size_t reach = 0;   // with the host tier
    std::size_t found = 0;   // at its turn
    std::int64_t work_ms = 0;
  };
  struct Server {
    std::map<Ids, Block> cache;
    std::size_t reserved = 0;
    std::vector<Ids> host;  // the most recently used first
    std::int64_t read_free = 0;
    std::int64_t write_free = 0;
    std::vector<std::size_t> queue;
    std::optional<std::size_t> computing;
    std::int64_t until = 0;
    std::int64_t waiting = 0;
    std::uint64_t computed = 0;
  };

  // What is due now and was foreseen first.
  std::optional<Due> first_due() const {
    for (const auto& [order, due] : dues_) {
      if (due.at_ms == now_) return due;
    }
    return std::nullopt;
  }
  void foresee(std::int64_t at_ms, What what, std::size_t request, std::size_t server) {
    dues_.emplace(order_, Due{at_ms, order_, what, request, server});
    ++order_;
  }

  std::size_t in_cache(const Server& server, const Ids& ids) const {
    const std::vector<Ids> blocks = blocks_of(ids);
    std::size_t found = 0;
    while (found < blocks.size() && server.cache.contains(blocks[found])) ++found;
    return found;
  }
  std::size_t in_host(const Server& server, const Ids& ids) const {
    std::size_t found = 0;
    for (const Ids& block : blocks_of(ids)) {
      if (std::find(server.host.begin(), server.host.end(), block) == server.host.end()) break;
      ++found;
    }
    return std::min(found, rules_.capacity);
  }

  Job estimate(const Server& server, std::size_t request, std::int64_t* ttft) const {
    const Ids& ids = requests_[request].ids;
    Job job;
    job.memory = job.reach = in_cache(server, ids);
    const std::int64_t turn = now_ + server.waiting + (server.computing ? server.until - now_ : 0);
    std::int64_t ready = 0;
    if (rules_.host && in_host(server, ids) > job.memory) {
      const std::size_t blocks = in_host(server, ids) - job.memory;
      const std::int64_t arrival =
          std::max(now_, server.read_free) + static_cast<std::int64_t>(blocks) * rules_.host_ms;
      if (arrival < turn + static_cast<std::int64_t>(blocks) * rules_.compute_ms) {
        job.reach += blocks;
        ready = arrival;
      }
    }
    const std::size_t missing = std::max<std::size_t>(ids.size() - job.reach, 1);
    job.work_ms = static_cast<std::int64_t>(missing) * rules_.compute_ms;
    *ttft = std::max(ready, turn) + job.work_ms - now_;
    return job;
  }

  void arrive(std::size_t request) {
    std::size_t chosen = came_++ % rules_.servers;
    std::int64_t ttft = 0;
    if (rules_.exact) {
      std::optional<std::pair<std::int64_t, std::uint64_t>> best;
      for (std::size_t i = 0; i < rules_.servers; ++i) {
        estimate(servers_[i], request, &ttft);
        const std::pair<std::int64_t, std::uint64_t> rank = {ttft, servers_[i].computed};
        if (!best || rank < *best) {
          best = rank;
          chosen = i;
        }
      }
    }
    Server& server = servers_[chosen];
    const Job job = jobs_[request] = estimate(server, request, &ttft);
    server.waiting += job.work_ms;
    if (job.reach == job.memory) {
      server.queue.push_back(request);
      return;
    }
    const std::size_t blocks = job.reach - job.memory;
    server.read_free =
        std::max(now_, server.read_free) + static_cast<std::int64_t>(blocks) * rules_.host_ms;
    result_.host_read += blocks;
    use_host(server, requests_[request].ids, job.reach);
    foresee(server.read_free, What::kLoaded, request, chosen);
  }

  std::size_t act(const Due& due) {
    Server& server = servers_[due.server];
    const Ids& ids = requests_[due.request].ids;
    if (due.what == What::kWritten) {
      use_host(server, ids, std::min(ids.size(), rules_.capacity));
    } else if (due.what == What::kLoaded) {
      const Ids loaded(ids.begin(),
                       ids.begin() + static_cast<std::ptrdiff_t>(jobs_[due.request].reach));
      if (const std::optional<std::size_t> found = open(server, loaded)) {
        publish(server, loaded, *found);
        close(server, loaded);
      }
      server.queue.push_back(due.request);
    } else if (due.what == What::kComputed) {
      publish(server, ids, jobs_[due.request].found);
      server.computing.reset();
      result_.ttft_ms[due.request] = now_ - requests_[due.request].at_ms;
      write(due.server, due.request);
      if (requests_[due.request].answer_ms > 0) {
        foresee(now_ + requests_[due.request].answer_ms, What::kEnded, due.request, due.server);
      } else {
        close(server, ids);
      }
    } else {
      close(server, ids);
    }
    settle();
    return due.what == What::kComputed ? 1 : 0;
  }

  // Who can begin does.
  void settle() {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      Server& server = servers_[i];
      if (server.computing || server.queue.empty()) continue;
      const std::size_t request = server.queue.front();
      const Ids& ids = requests_[request].ids;
      Job& job = jobs_[request];
      const std::optional<std::size_t> opened = open(server, ids);
      if (!opened) {
        ++result_.waited_for_room;
        continue;
      }
      const std::size_t found = job.found = *opened;
      server.queue.erase(server.queue.begin());
      server.waiting -= job.work_ms;
      result_.found += found;
      result_.from_host += std::min(found, job.reach) - std::min(found, job.memory);
      server.computed += ids.size() - found;
      server.computing = request;
      server.until =
          now_ + static_cast<std::int64_t>(std::max<std::size_t>(ids.size() - found, 1)) *
                     rules_.compute_ms;
      foresee(server.until, What::kComputed, request, i);
    }
  }

  std::vector<Ids> kept(const Ids& ids) const {
    std::vector<Ids> blocks = blocks_of(ids);
    blocks.resize(std::min(blocks.size(), rules_.capacity));
    return blocks;
  }

  // Holds what is there and takes room for the rest; nothing where held blocks leave too little.
  // Returns how many blocks were there.
  std::optional<std::size_t> open(Server& server, const Ids& ids) {
    const std::vector<Ids> blocks = kept(ids);
    const std::size_t found = in_cache(server, ids);
    std::size_t held = server.reserved + blocks.size() - found;
    for (const auto& [block, state] : server.cache) {
      const bool mine = std::find(blocks.begin(), blocks.end(), block) != blocks.end();
      held += state.holders > 0 || mine ? 1 : 0;
    }
    if (held > rules_.capacity) return std::nullopt;
    for (std::size_t i = 0; i < found; ++i) ++server.cache[blocks[i]].holders;
    server.reserved += blocks.size() - found;
    while (server.cache.size() + server.reserved > rules_.capacity) evict(server);
    return found;
  }

  void evict(Server& server) {
    std::optional<Ids> oldest;
    for (const auto& [block, state] : server.cache) {
      const bool goes_on = std::any_of(
          server.cache.begin(), server.cache.end(), [&, &block = block](const auto& other) {
            return other.first.size() == block.size() + 1 &&
                   std::equal(block.begin(), block.end(), other.first.begin());
          });
      if (state.holders > 0 || goes_on) continue;
      if (!oldest || state.last_use < server.cache[*oldest].last_use) oldest = block;
    }
    server.cache.erase(*oldest);
  }

  // What open() did not find is there; where it came meanwhile by another way, that is held.
  void publish(Server& server, const Ids& ids, std::size_t found) {
    const std::vector<Ids> blocks = kept(ids);
    for (std::size_t i = found; i < blocks.size(); ++i) {
      ++server.cache[blocks[i]].holders;
      --server.reserved;
    }
  }

  void close(Server& server, const Ids& ids) {
    const std::vector<Ids> blocks = kept(ids);
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      --server.cache[*block].holders;
      server.cache[*block].last_use = ++uses_;
    }
  }

  void use_host(Server& server, const Ids& ids, std::size_t blocks_used) {
    std::vector<Ids> blocks = blocks_of(ids);
    blocks.resize(std::min(blocks_used, *rules_.host));
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      server.host.erase(std::remove(server.host.begin(), server.host.end(), *block),
                        server.host.end());
      server.host.insert(server.host.begin(), *block);
      if (server.host.size() > *rules_.host) server.host.pop_back();
    }
  }

  void write(std::size_t at, std::size_t request) {
    if (!rules_.host) return;
    Server& server = servers_[at];
    std::int64_t fresh = 0;
    const std::vector<Ids> blocks = kept(requests_[request].ids);
    for (const Ids& block : blocks) {
      fresh += std::find(server.host.begin(), server.host.end(), block) == server.host.end();
    }
    if (fresh == 0) {
      use_host(server, requests_[request].ids, blocks.size());
      return;
    }
    if (server.write_free - now_ > 1000) return;  // left out: it would wait for more than a second
    result_.host_written += static_cast<std::uint64_t>(fresh);
    server.write_free = std::max(now_, server.write_free) + fresh * rules_.host_ms;
    foresee(server.write_free, What::kWritten, request, at);
  }

  std::vector<PlainRequest> requests_;
  PlainFleetRules rules_;
  std::vector<Server> servers_;
  std::map<std::size_t, Job> jobs_;
  std::map<std::uint64_t, Due> dues_;  // [order]
  std::uint64_t order_ = 0;
  std::uint64_t uses_ = 0;
  std::int64_t now_ = 0;
  std::size_t came_ = 0;
  PlainFleetResult result_;
};

}  // namespace pagoda::replay
