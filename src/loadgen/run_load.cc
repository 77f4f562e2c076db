#include "loadgen/run_load.h"

#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <queue>

#include "loadgen/dialer.h"
#include "loadgen/load_connection.h"
#include "loadgen/poller.h"

namespace pagoda::loadgen {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::int64_t kProgressNs = 100'000'000;

// Connections are descriptors, and most systems give a program fewer than it may have.
void raise_descriptor_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

class Sender {
 public:
  Sender(const Dialer& dialer, const CompletionForm& form, Workload& workload,
         const LoadOptions& options, const LoadEvents& events, const Clock& clock)
      : dialer_(dialer),
        form_(form),
        workload_(workload),
        options_(options),
        events_(events),
        time_(clock),
        room_(kReadBytes) {}

  LoadResult run() {
    upcoming_ = workload_.next();
    while (!is_over()) {
      if (events_.stopped && events_.stopped()) {
        abandon();
        break;
      }
      const std::int64_t now_ns = time_.now_ns();
      report_progress(now_ns);
      expire(now_ns);
      while (is_due(now_ns)) start(take_next());
      if (is_over()) break;
      for (const std::uint32_t slot : poller_.wait(nanoseconds_to_wait())) advance(slot);
    }
    result_.seconds = seconds_between(0, time_.now_ns());
    return std::move(result_);
  }

 private:
  struct Later {
    bool operator()(const PlannedRequest& one, const PlannedRequest& other) const {
      return one.scheduled_ns > other.scheduled_ns;
    }
  };
  struct Deadline {
    std::int64_t at_ns;
    std::uint32_t slot;
    std::uint64_t number;  // of the request among all that were begun
  };
  struct Slot {
    std::unique_ptr<LoadConnection> connection;
    std::uint64_t number = 0;
  };

  bool is_over() const { return in_flight_ == 0 && !has_next(); }
  bool sends_no_more(std::int64_t scheduled_ns) const {
    return options_.duration_s > 0 &&
           std::max(scheduled_ns, time_.now_ns()) >= nanoseconds(options_.duration_s);
  }
  bool has_next() const {
    return (upcoming_ && !sends_no_more(upcoming_->scheduled_ns)) ||
           (!follow_ups_.empty() && !sends_no_more(follow_ups_.top().scheduled_ns));
  }
  bool follow_up_first() const {
    return !follow_ups_.empty() &&
           (!upcoming_ || follow_ups_.top().scheduled_ns < upcoming_->scheduled_ns);
  }
  std::int64_t next_scheduled_ns() const {
    return follow_up_first() ? follow_ups_.top().scheduled_ns : upcoming_->scheduled_ns;
  }
  bool has_slot() const {
    return options_.concurrency_max == 0 || in_flight_ < options_.concurrency_max;
  }
  bool is_due(std::int64_t now_ns) const {
    return has_next() && has_slot() && next_scheduled_ns() <= now_ns;
  }

  PlannedRequest take_next() {
    PlannedRequest planned;
    if (follow_up_first()) {
      planned = follow_ups_.top();
      follow_ups_.pop();
    } else {
      planned = std::move(*upcoming_);
      upcoming_ = workload_.next();
    }
    return planned;
  }

  std::int64_t nanoseconds_to_wait() const {
    const std::int64_t now_ns = time_.now_ns();
    std::int64_t until_ns = last_progress_ns_ + kProgressNs;
    if (!deadlines_.empty()) until_ns = std::min(until_ns, deadlines_.front().at_ns);
    if (has_next() && has_slot()) until_ns = std::min(until_ns, next_scheduled_ns());
    return std::max<std::int64_t>(until_ns - now_ns, 0);
  }

  void start(PlannedRequest planned) {
    std::string request = completion_request(dialer_.target(), form_, planned);
    const std::int64_t now_ns = time_.now_ns();
    const Outcome outcome = {.scheduled_ns = options_.closed_loop ? now_ns : planned.scheduled_ns,
                             .sent_ns = now_ns,
                             .user = planned.user,
                             .turn = planned.turn};
    while (!idle_.empty()) {
      const std::uint32_t slot = idle_.back();
      idle_.pop_back();
      if (slots_[slot].connection && slots_[slot].connection->is_reusable()) {
        return begin(slot, std::move(planned), std::move(request), outcome);
      }
      close(slot);
    }
    dial(std::move(planned), std::move(request), outcome);
  }

  void dial(PlannedRequest planned, std::string request, Outcome outcome) {
    Result<net::Socket> socket = dialer_.connect();
    if (!socket.ok()) {
      outcome.kind = OutcomeKind::kConnection;
      outcome.first_ns = outcome.last_ns = outcome.end_ns = time_.now_ns();
      return record(outcome, socket.error().message);
    }
    ++result_.connections;
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    slots_[slot].connection = std::make_unique<LoadConnection>(std::move(socket).value(), time_);
    poller_.add(slots_[slot].connection->descriptor(), slot);
    begin(slot, std::move(planned), std::move(request), outcome);
  }

  void begin(std::uint32_t slot, PlannedRequest planned, std::string request,
             const Outcome& outcome) {
    LoadConnection& connection = *slots_[slot].connection;
    connection.begin(std::move(planned), std::move(request), form_.stream, outcome);
    slots_[slot].number = ++begun_;
    deadlines_.push_back({outcome.sent_ns + nanoseconds(options_.timeout_s), slot, begun_});
    result_.in_flight_peak = std::max(result_.in_flight_peak, ++in_flight_);
    // A new connection says itself when it may be written to.
    if (connection.requests() > 1) advance(slot);
  }

  void advance(std::uint32_t slot) {
    LoadConnection* const connection = slots_[slot].connection.get();
    if (connection == nullptr) return;
    const bool was_busy = connection->is_busy();
    connection->advance(room_, result_.itl_s);
    if (was_busy && !connection->is_busy()) finish(slot);
    // An idle one that the server closed stays in idle_ until its turn comes.
  }

  void finish(std::uint32_t slot) {
    LoadConnection& connection = *slots_[slot].connection;
    --in_flight_;
    if (connection.may_try_again()) {
      PlannedRequest planned = connection.take_planned();
      const Outcome outcome = {.scheduled_ns = connection.outcome().scheduled_ns,
                               .sent_ns = connection.outcome().sent_ns,
                               .user = planned.user,
                               .turn = planned.turn};
      close(slot);
      std::string request = completion_request(dialer_.target(), form_, planned);
      return dial(std::move(planned), std::move(request), outcome);
    }
    record(connection.outcome(), connection.failure());
    if (connection.outcome().answered()) {
      std::optional<PlannedRequest> more =
          workload_.follow(connection.planned(), connection.answer(), connection.outcome().end_ns);
      if (more) follow_ups_.push(std::move(*more));
    }
    if (connection.is_reusable()) {
      idle_.push_back(slot);
    } else {
      close(slot);
    }
  }

  void record(const Outcome& outcome, const std::string& failure) {
    result_.outcomes.push_back(outcome);
    const bool failed = !outcome.answered() && outcome.kind != OutcomeKind::kUnfinished;
    if (failed && result_.first_failure.empty()) result_.first_failure = failure;
  }

  void close(std::uint32_t slot) {
    slots_[slot].connection.reset();
    free_.push_back(slot);
  }

  void expire(std::int64_t now_ns) {
    while (!deadlines_.empty()) {
      const Deadline first = deadlines_.front();
      const Slot& slot = slots_[first.slot];
      const bool waits =
          slot.connection && slot.connection->is_busy() && slot.number == first.number;
      if (waits && first.at_ns > now_ns) return;
      deadlines_.pop_front();
      if (!waits) continue;
      slot.connection->give_up(OutcomeKind::kTimedOut);
      finish(first.slot);
    }
  }

  void abandon() {
    result_.stopped = true;
    for (const Slot& slot : slots_) {
      if (!slot.connection || !slot.connection->is_busy()) continue;
      slot.connection->give_up(OutcomeKind::kUnfinished);
      record(slot.connection->outcome(), {});
    }
  }

  void report_progress(std::int64_t now_ns) {
    if (now_ns - last_progress_ns_ < kProgressNs) return;
    last_progress_ns_ = now_ns;
    if (events_.on_progress) {
      events_.on_progress(result_.outcomes.size(), seconds_between(0, now_ns));
    }
  }

  const Dialer& dialer_;
  const CompletionForm& form_;
  Workload& workload_;
  const LoadOptions& options_;
  const LoadEvents& events_;
  const Timeline time_;
  std::vector<char> room_;  // for what is read, whoever reads
  Poller poller_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;  // slots without a connection
  std::vector<std::uint32_t> idle_;  // slots whose connection waits for a request
  std::optional<PlannedRequest> upcoming_;
  std::priority_queue<PlannedRequest, std::vector<PlannedRequest>, Later> follow_ups_;
  std::deque<Deadline> deadlines_;  // in order: all requests have the same time
  std::uint64_t begun_ = 0;
  std::uint64_t in_flight_ = 0;
  std::int64_t last_progress_ns_ = 0;
  LoadResult result_;
};

}  // namespace

Result<LoadResult> run_load(const Target& target, const CompletionForm& form, Workload& workload,
                            const LoadOptions& options, const LoadEvents& events,
                            const Clock& clock) {
  ASSIGN_OR_RETURN(const Dialer dialer, Dialer::open(target));
  raise_descriptor_limit();
  return Sender(dialer, form, workload, options, events, clock).run();
}

}  // namespace pagoda::loadgen
