// Finds and reads of clients, as far as the listener answers them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/page_record.h"
#include "store/peer/peer_listener.h"
#include "store/peer/peer_mail.h"

namespace pagoda::store {

using kv::StoreFault;

void PeerListener::move(PeerConnection& client) {
  if (client.is_over()) return;
  const bool was_proven = client.is_proven();
  std::vector<PeerRequest> requests;
  Result<PeerNonce> nonce = PeerNonce{};
  if (client.session() == nullptr) nonce = fresh_nonce();
  if (!nonce.ok()) return refuse(client, nonce.error().message);
  const PeerSession::Terms terms = {
      .key = options_.key, .deployment = deployment_, .nonce = nonce.value()};
  const Status received = client.receive(terms, options_.out_bytes_max, requests);
  if (!received.ok()) return refuse(client, received.error().message);
  if (!was_proven && client.is_proven() && !welcomes(client)) return;
  take_requests(client, std::move(requests));
  if (client.is_over()) return;
  send_pages(client);
  const Status sent = client.send(clock_.now_ns());
  if (!sent.ok()) return refuse(client, sent.error().message);
  // There is room again for those that waited for it.
  const bool has_room = client.out_bytes() <= options_.out_bytes_max;
  has_more_ =
      has_more_ || (has_room && !client.reads().empty() && !client.reads().front().is_looked_for);
}

// Once a client has proven itself.
bool PeerListener::welcomes(PeerConnection& client) {
  if (proven_clients() > options_.connections_max) {
    ++refused_;
    note_once("many", fmt::format("more than {} servers want pages at a time: the others are "
                                  "refused",
                                  options_.connections_max));
    client.end();
    return false;
  }
  if (!client.session()->is_of_this_deployment()) {
    note_once("deployment",
              "a server with another secret asks for pages: what tenants computed "
              "here is not found there");
  }
  return true;
}

void PeerListener::take_requests(PeerConnection& client, std::vector<PeerRequest> requests) {
  for (PeerRequest& request : requests) {
    if (const auto* const withdrawn = std::get_if<WithdrawFrame>(&request)) {
      withdraw(client, withdrawn->number);
      continue;
    }
    const bool is_read = std::holds_alternative<ReadFrame>(request);
    const std::size_t open = is_read ? client.reads().size() : client.finds_open;
    if (open >= PeerConnection::kRequestsMax) {
      return refuse(client, "it asks for more than it may at a time");
    }
    if (is_read) {
      client.reads().push_back({std::get<ReadFrame>(request)});
    } else {
      begin_find(client, std::get<FindFrame>(std::move(request)));
    }
  }
}

// Where others ask for very much, there is nothing for the client.
void PeerListener::begin_find(PeerConnection& client, FindFrame asked) {
  if (find_keys_ + asked.keys.size() > options_.find_keys_max) {
    client.put(found_frame({.number = asked.number, .keys_found = 0}));
    return;
  }
  const std::int64_t wait_ns =
      std::min(std::int64_t{asked.wait_ms} * 1'000'000, options_.wait_ns_max);
  const std::uint64_t number = next_find_++;
  find_keys_ += asked.keys.size();
  finds_.emplace(number, OpenFind{.client = client.number(),
                                  .asked = std::move(asked),
                                  .wait_until_ns = clock_.now_ns() + wait_ns});
  ++client.finds_open;
  settle(number);
}

// Pages that the cache was asked for come all the same, and are given back then.
void PeerListener::withdraw(PeerConnection& client, std::uint64_t number_of_client) {
  const auto at = std::find_if(finds_.begin(), finds_.end(), [&](const auto& find) {
    return find.second.client == client.number() && find.second.asked.number == number_of_client;
  });
  if (at == finds_.end()) return;  // its answer is on its way
  --client.finds_open;
  forget(at);
}

PeerListener::Finds::iterator PeerListener::forget(Finds::iterator find) {
  find_keys_ -= find->second.asked.keys.size();
  return finds_.erase(find);
}

// Pages of a prompt that was handed over are there already; the cache is asked for the others.
void PeerListener::settle(std::uint64_t number) {
  const auto at = finds_.find(number);
  if (at == finds_.end()) return;
  OpenFind& find = at->second;
  const std::vector<kv::PageKey>& keys = find.asked.keys;
  const std::int64_t until_ns = clock_.now_ns() + options_.lease_ns;
  find.is_waiting = false;
  while (find.keys_held < keys.size() && book_.claim(find.client, keys[find.keys_held], until_ns)) {
    ++find.keys_held;
  }
  if (find.keys_held == keys.size()) return answer(number);
  const auto rest = keys.begin() + static_cast<std::ptrdiff_t>(find.keys_held);
  ask({rest, keys.end()}, [number](Mail& mail, std::vector<kv::LeasedPage> pages) {
    mail.letters.found.emplace_back(number, std::move(pages));
  });
}

void PeerListener::answer(std::uint64_t number) {
  const auto find = finds_.find(number);
  if (PeerConnection* const client = client_of(find->second.client)) {
    client->put(found_frame({.number = find->second.asked.number,
                             .keys_found = static_cast<std::uint32_t>(find->second.keys_held)}));
    --client->finds_open;
    has_more_ = true;
  }
  forget(find);
}

void PeerListener::take_found(std::uint64_t number, std::vector<kv::LeasedPage> pages) {
  const auto at = finds_.find(number);
  if (at == finds_.end() || client_of(at->second.client) == nullptr) {
    for (const kv::LeasedPage& page : pages) ended_.push_back(page.block);
    if (at != finds_.end()) forget(at);
    return;
  }
  OpenFind& find = at->second;
  find.keys_held += pages.size();
  hold(find.client, std::move(pages));
  const bool waits =
      find.keys_held < find.asked.keys.size() && clock_.now_ns() < find.wait_until_ns;
  if (!waits) return answer(number);
  find.is_waiting = true;
}

// A prompt was handed over, whole or not: whoever waits for it is answered, once, with what there
// is. Another prompt that begins alike has not the last block.
void PeerListener::wake_waiting(const std::vector<kv::BlockHash>& prompt) {
  const auto has = [&](const kv::PageKey& key) {
    return std::find(prompt.begin(), prompt.end(), key.hash) != prompt.end();
  };
  for (auto& [number, find] : finds_) {
    const std::vector<kv::PageKey>& keys = find.asked.keys;
    if (keys.empty() || !has(keys.front()) || !has(keys.back())) continue;
    find.wait_until_ns = 0;
    if (std::exchange(find.is_waiting, false)) woken_.push_back(number);
  }
}

void PeerListener::send_pages(PeerConnection& client) {
  while (!client.reads().empty() && client.out_bytes() <= options_.out_bytes_max) {
    PeerConnection::PendingRead& read = client.reads().front();
    if (!send_page(client, read.asked)) {
      if (!read.is_absent) {
        if (std::exchange(read.is_looked_for, true)) return;
        return ask({read.asked.key}, [number = client.number(), key = read.asked.key](
                                         Mail& mail, std::vector<kv::LeasedPage> pages) {
          mail.letters.pages.push_back({number, key, std::move(pages)});
        });
      }
      client.put(fault_frame(read.asked.number, StoreFault::kAbsent));
    }
    client.reads().pop_front();
  }
}

// False: the page is not leased to the client.
bool PeerListener::send_page(PeerConnection& client, const ReadFrame& asked) {
  book_.claim(client.number(), asked.key, clock_.now_ns() + options_.lease_ns);
  const kv::LeasedPage* const leased = book_.find(client.number(), asked.key);
  if (leased == nullptr) return false;
  StoreFault fault = leased->label.owner == asked.owner ? StoreFault::kNone : StoreFault::kForeign;
  std::span<const std::byte> page = leased->page;
  if (fault == StoreFault::kNone && options_.copier) {
    const kv::PageCopy copy = {staging_.get(), page.data(), page.size()};
    if (!options_.copier->copy(std::span(&copy, 1)).ok()) fault = StoreFault::kIo;
    page = {staging_.get(), page.size()};
  }
  if (fault == StoreFault::kNone) {
    const std::size_t bytes = record_bytes(leased->label.tokens.size(), page.size());
    std::string frame = page_frame(asked.number, bytes);
    const auto record = std::as_writable_bytes(std::span(frame)).last(bytes);
    if (write_record(leased->label, 0, page, &cipher_, record).ok()) {
      client.put(std::move(frame));
      ++pages_sent_;
      bytes_sent_ += page.size();
    } else {
      fault = StoreFault::kIo;
    }
  }
  if (fault != StoreFault::kNone) client.put(fault_frame(asked.number, fault));
  book_.end(client.number(), asked.key, ended_);
  return true;
}

// The page may have been sent meanwhile: a prompt that was handed over had it.
void PeerListener::take_page(LeaseBook::Holder number, const kv::PageKey& key,
                             std::vector<kv::LeasedPage> pages) {
  PeerConnection* const client = client_of(number);
  const bool is_wanted =
      client != nullptr && !client->reads().empty() && client->reads().front().asked.key == key;
  if (!is_wanted) {
    for (const kv::LeasedPage& page : pages) ended_.push_back(page.block);
    return;
  }
  PeerConnection::PendingRead& read = client->reads().front();
  read.is_absent = pages.empty();
  read.is_looked_for = read.is_absent;  // a lease that ends before it is used is asked for again
  hold(number, std::move(pages));
}

}  // namespace pagoda::store
