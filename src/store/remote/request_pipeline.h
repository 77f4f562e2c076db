// RequestPipeline carries pages to and from the nodes of a store: it decides which commands a read,
// a write or a lookup is made of, how many travel to a node at a time, where they go when a node
// sends them elsewhere, and when their time is up. It runs on the store's thread alone.
//
// Lookups go before reads, reads before writes. Each node has a window of its own, so that a slow
// one keeps nobody waiting for the others. A page is touched only while its request is not over:
// late replies are dropped.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "store/page_cipher.h"
#include "store/remote/known_keys.h"
#include "store/remote/node_set.h"
#include "store/remote/page_keys.h"
#include "store/remote/remote_options.h"
#include "store/remote/store_request.h"

namespace pagoda::store {

class RequestPipeline {
 public:
  // Called once for every request, when it is over.
  using Report = std::function<void(const StoreRequest& request)>;

  // Referenced arguments outlive the pipeline's use; `nodes` is not touched by the constructor.
  RequestPipeline(const RemoteOptions& options, const PageCipher* cipher, KnownKeys& known,
                  const Clock& clock, NodeSet& nodes, Report report);

  void take(StoreRequest request);
  // Cancels reads that have not begun.
  void cancel(std::span<const kv::StoreTicket> tickets);
  // Begins as many requests as may travel; those whose node is off end with kOff.
  void launch();
  // Ends requests that are late.
  void expire();
  // Ends every request: those that have begun with kIo, the others with kOff.
  void abandon();

  std::int64_t next_deadline_ns() const;
  // Returns the number of the first write that is not over.
  std::uint64_t first_write() const;
  // Counts replies that sent a command to another node, or asked to wait.
  std::uint64_t redirections() const { return redirections_; }

 private:
  static constexpr std::size_t kCommandsInFlightMax = 4096;  // to one node
  // A request is sent from node to node so often, and waits in between where it must.
  static constexpr std::uint8_t kRedirectionsMax = 5;

  using Shared = std::shared_ptr<StoreRequest>;
  using Queue = std::deque<Shared>;  // in the order of calls, which is that of deadlines

  // Reads and writes that wait for one node.
  struct Lane {
    Queue reads;
    Queue writes;
  };
  struct Parked {
    Shared request;
    std::int64_t until_ns;
  };

  void put(const Shared& request);
  void launch_lookups();
  bool launch_queue(NodeLink* node, Queue& queue);
  bool fits(const StoreRequest& request, const RemoteConnection& connection) const;
  void begin(const Shared& request, NodeLink& node, bool asking = false);
  void end_late(const Shared& request, NodeLink* node);

  static void send_asking(NodeLink& node);

  void ask_keys(const Shared& request);
  void ask_key(const Shared& request, std::size_t key);
  void send_question(const Shared& request, std::size_t key, NodeLink& node, bool asking);
  void on_key_reply(const Shared& request, std::size_t key, NodeLink& node, const Reply& reply);
  // False: the key counts as not there.
  bool ask_elsewhere(const Shared& request, std::size_t key, const Redirection& to);
  void answer_key(const Shared& request, std::size_t key, LookupKey::State state);

  void read(const Shared& request, NodeLink& node, bool asking);
  void on_part_reply(const Shared& request, bool is_whole, Reply& reply);
  void write(const Shared& request, NodeLink& node, bool asking);
  void write_parts(const Shared& request, NodeLink& node, bool asking);
  void write_part(const Shared& request, NodeLink& node, std::size_t part, std::string_view value,
                  bool asking);
  void on_written(const Shared& request, NodeLink& node, bool asking, const Reply& reply);
  // Asks for the two generations of a request's page. A write goes on when it knows them, a read
  // meanwhile.
  void ask_generation(const Shared& request, NodeLink& node);
  void on_generation_reply(const Shared& request, const Reply& reply);

  void follow_redirection(const Shared& request);
  void park(const Shared& request);
  void resume_parked();

  void note(StoreRequest& request, const Reply& reply);
  void finish(const Shared& request, kv::StoreFault fault);
  void learn(const StoreRequest& request);
  KeyForm form() const { return nodes_.is_cluster() ? KeyForm::kTagged : KeyForm::kPlain; }

  const RemoteOptions& options_;
  const PageCipher* cipher_;
  KnownKeys& known_;
  const Clock& clock_;
  NodeSet& nodes_;
  Report report_;

  Queue lookups_;
  // By the node that had their slots when they were put; launch() looks again.
  std::map<NodeLink*, Lane> lanes_;
  std::vector<Shared> begun_;
  std::vector<Parked> parked_;  // begun ones that wait for the cluster to make up its mind
  std::string record_;          // the record in parts being written
  std::uint64_t redirections_ = 0;
};

}  // namespace pagoda::store
