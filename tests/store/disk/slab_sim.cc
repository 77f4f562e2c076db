#include "store/disk/slab_sim.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"

namespace pagoda::store {

using kv::StoreFault;

SlabSim::SlabSim(const SlabSimOptions& options) : options_(options), disk_(options.seed) {
  const SlotGeometry geometry = {options.page_bytes, options.block_tokens};
  bytes_max_ = 2 * kIoAlignment + options.slots * (geometry.slot_bytes() + kRecordBytes);
  buffer_ = std::make_unique<AlignedBytes>(geometry.slot_bytes());
  for (std::uint64_t i = 0; i < options.pages; ++i) {
    Page page;
    page.label = sample_label(options.seed * 1000 + i, options.block_tokens, i % 3);
    pages_.push_back(page);
  }
}

std::uint64_t SlabSim::draw(std::uint64_t below) {
  return random_bits(options_.seed, 5, draws_++) % below;
}

void SlabSim::fail(const std::string& rule) {
  if (broken_.empty()) broken_ = fmt::format("seed {}: {}", options_.seed, rule);
}

SlotCodec SlabSim::codec() const {
  std::optional<SlotCipher> cipher;
  if (options_.is_encrypted) cipher.emplace(SecretKey{std::byte{7}});
  return {{options_.page_bytes, options_.block_tokens}, std::move(cipher)};
}

std::string SlabSim::run() {
  disk_.changes_until_crash = options_.crash_at;
  open();
  for (std::uint64_t i = 0; i < options_.steps && broken_.empty() && slab_ != nullptr; ++i) {
    disk_.faults = options_.faults;
    step();
    if (disk_.is_dead()) crash_and_open();
    if (disk_.bytes() > bytes_max_) {
      fail(fmt::format("the files take {} bytes of {}", disk_.bytes(), bytes_max_));
    }
    if (slab_ != nullptr) slab_->check();
  }
  if (broken_.empty() && slab_ != nullptr) crash_and_open();
  return broken_;
}

// A disk that dies while the store opens crashes again; one that only fails is tried once more
// without faults.
void SlabSim::open() {
  for (int attempt = 0; attempt < 3; ++attempt) {
    layer_ = disk_.layer();
    Result<SlabFiles> files = SlabFiles::open(*layer_, codec(), bytes_max_);
    if (files.ok()) {
      slab_ = std::make_unique<Slab>(std::move(files).value(), codec(),
                                     [this] { return now_us_ += 3; });
      if (slab_->load([] {}) == 0) return;
    }
    slab_.reset();
    if (disk_.is_dead()) {
      disk_.crash();
      ++crashes;
    }
    disk_.faults = {};
  }
  if (flips_ < 2) fail("the store does not open");
}

void SlabSim::step() {
  const std::uint64_t choice = draw(100);
  const std::size_t page = draw(pages_.size());
  if (options_.is_trace) fmt::print("{} page {} change {}\n", choice, page, disk_.changes());
  if (choice < 30) {
    if (writing_.size() < 3) begin_write();
  } else if (choice < 55) {
    if (!writing_.empty()) end_write(draw(writing_.size()));
  } else if (choice < 60) {
    if (!writing_.empty()) write_slot(writing_[draw(writing_.size())]);
  } else if (choice < 66) {
    read(page, false);
  } else if (choice < 70) {
    hold_or_end_read(page);
  } else if (choice < 74) {
    read_wrong_label(page);
  } else if (choice < 84) {
    commit();
  } else if (choice < 88) {
    slab_->keeps(pages_[page].label.key);
  } else if (choice < 91) {
    scrub();
  } else if (choice < 93) {
    remove();
  } else if (choice < 95) {
    close_and_open();
  } else if (choice < 98) {
    if (options_.crash_at < 0) crash_and_open();
  } else if (options_.has_flips && disk_.flip_bit()) {
    ++flips_;
  }
}

bool SlabSim::is_there(std::size_t page) const {
  return slab_->find(std::span(&pages_[page].label.key, 1)) == 1;
}

void SlabSim::begin_write() {
  const std::size_t page = draw(pages_.size());
  const auto slot = slab_->begin_write();
  if (!slot) return;
  pages_[page].is_removed = false;
  writing_.push_back({page, *slot, pages_[page].versions++, false, std::nullopt, 0});
}

// The write's I/O may be done long before its end: commits come in between.
void SlabSim::write_slot(Writing& writing) {
  if (writing.is_written) return;
  writing.is_written = true;
  const std::vector<std::byte> bytes =
      sample_page(options_.seed * 1000 + writing.page, writing.version, options_.page_bytes);
  writing.sum = slab_->codec().seal(pages_[writing.page].label, bytes, writing.slot.written_us,
                                    buffer_->span());
  writing.error = slab_->files().write_slot(writing.slot.slot, buffer_->span()).error;
  if (writing.error != 0) writing.sum.reset();
}

void SlabSim::end_write(std::size_t index) {
  write_slot(writing_[index]);
  const Writing writing = writing_[index];
  writing_.erase(writing_.begin() + static_cast<std::ptrdiff_t>(index));
  Page& page = pages_[writing.page];
  const bool is_placed = slab_->end_write(writing.slot, page.label, writing.sum, writing.error);
  if (is_placed != (writing.error == 0) && slab_->syncs_failed() == 0) {
    fail("a write ends as its disk did");
  }
  if (is_placed) {
    may_held_go_ = may_held_go_ || (held_ && held_->first == writing.page);
    page.is_placed = true;
    page.is_durable = false;  // the older copy was replaced, this one is not synced
  }
}

bool SlabSim::is_known_page(std::size_t page, std::span<const std::byte> bytes) const {
  for (std::uint64_t version = pages_[page].versions; version-- > 0;) {
    const std::vector<std::byte> wanted =
        sample_page(options_.seed * 1000 + page, version, options_.page_bytes);
    if (std::equal(bytes.begin(), bytes.end(), wanted.begin())) return true;
  }
  return false;
}

// `is_calm`: the disk has no faults now, and the page must be there.
void SlabSim::read(std::size_t page, bool is_calm) {
  const bool was_there = is_there(page);
  const auto reading = slab_->begin_read(pages_[page].label.key);
  if (reading.has_value() != was_there) fail("find() and begin_read() disagree");
  if (!reading) {
    if (is_calm) fail(fmt::format("durable page {} is absent", page));
    return;
  }
  std::vector<std::byte> bytes(options_.page_bytes);
  const IoResult done = slab_->files().read_slot(reading->slot, buffer_->span());
  StoreFault fault = StoreFault::kIo;
  if (done.error == 0) {
    fault = slab_->codec().open(buffer_->span(), reading->sum, pages_[page].label, bytes);
  }
  fault = slab_->end_read(*reading, fault);
  if (fault == StoreFault::kNone && !is_known_page(page, bytes)) {
    fail(fmt::format("page {} came back as something else", page));
  }
  if (fault == StoreFault::kNone && pages_[page].is_removed) {
    fail(fmt::format("page {} came back after its removal", page));
  }
  const bool may_fail = flips_ > 0 || (!is_calm && (done.error != 0 || has_crashed_));
  if (fault != StoreFault::kNone && !may_fail) {
    fail(fmt::format("page {} is {}", page, kv::name_of(fault)));
  }
}

// Whatever happens while a slot is being read must not change the bytes that are read.
void SlabSim::hold_or_end_read(std::size_t page) {
  if (!held_) {
    const auto reading = slab_->begin_read(pages_[page].label.key);
    if (reading) held_.emplace(page, *reading);
    held_syncs_failed_ = slab_->syncs_failed();
    may_held_go_ = false;
    return;
  }
  const auto [held_page, reading] = *held_;
  held_.reset();
  const auto now = slab_->begin_read(pages_[held_page].label.key);
  const bool is_same = now && now->slot == reading.slot && now->sum == reading.sum;
  if (now) slab_->end_read(*now, StoreFault::kIo);
  std::vector<std::byte> bytes(options_.page_bytes);
  const IoResult done = slab_->files().read_slot(reading.slot, buffer_->span());
  StoreFault fault = StoreFault::kIo;
  if (done.error == 0) {
    fault = slab_->codec().open(buffer_->span(), reading.sum, pages_[held_page].label, bytes);
  }
  fault = slab_->end_read(reading, fault);
  if (fault == StoreFault::kNone && !is_known_page(held_page, bytes)) {
    fail(fmt::format("page {} came back as something else", held_page));
  }
  const bool may_go =
      may_held_go_ || flips_ > 0 || has_crashed_ || slab_->syncs_failed() != held_syncs_failed_;
  if (!is_same && !may_go) fail(fmt::format("page {} made way while it was read", held_page));
  if (is_same && done.error == 0 && fault != StoreFault::kNone && flips_ == 0 && !has_crashed_) {
    fail(fmt::format("page {} is {}", held_page, kv::name_of(fault)));
  }
}

void SlabSim::read_wrong_label(std::size_t page) {
  const auto reading = slab_->begin_read(pages_[page].label.key);
  if (!reading) return;
  kv::PageLabel wrong = pages_[page].label;
  switch (draw(3)) {
    case 0:
      wrong.owner = sample_owner(99);
      break;
    case 1:
      wrong.parent.digest[5] ^= std::byte{1};
      break;
    default:
      wrong.tokens.back() = TokenId(wrong.tokens.back().value() + 1);
      break;
  }
  std::vector<std::byte> bytes(options_.page_bytes);
  const IoResult done = slab_->files().read_slot(reading->slot, buffer_->span());
  StoreFault fault = StoreFault::kIo;
  if (done.error == 0) {
    fault = slab_->codec().open(buffer_->span(), reading->sum, wrong, bytes);
    if (fault == StoreFault::kNone) fail("a page was given to who asked for another");
  }
  slab_->end_read(*reading, fault);
}

void SlabSim::commit() {
  const std::uint64_t failed_before = slab_->syncs_failed();
  const int error = slab_->commit();
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    Page& page = pages_[i];
    if (slab_->syncs_failed() != failed_before && !is_there(i)) page.is_placed = false;
    if (error == 0 && page.is_placed) page.is_durable = true;
  }
}

void SlabSim::end_writes() {
  while (!writing_.empty()) end_write(writing_.size() - 1);
}

void SlabSim::remove() {
  end_writes();
  const std::uint64_t owner = draw(3);
  may_held_go_ = true;
  const Result<kv::Removal> removed = slab_->remove(sample_owner(owner));
  const bool is_sure = removed.ok() && removed.value().overwritten;
  for (std::size_t i = owner; i < pages_.size(); i += 3) {
    pages_[i].is_durable = false;
    pages_[i].is_placed = false;
    if (is_there(i)) fail(fmt::format("page {} is there after its removal", i));
    if (!removed.ok()) continue;
    pages_[i].is_removed = true;
    if (!is_sure || flips_ > 0 || options_.is_encrypted) continue;
    for (std::uint64_t version = 0; version < pages_[i].versions; ++version) {
      const std::vector<std::byte> page =
          sample_page(options_.seed * 1000 + i, version, options_.page_bytes);
      const std::string bytes(reinterpret_cast<const char*>(page.data()) + 400, 64);
      if (disk_.holds(bytes)) fail(fmt::format("bytes of page {} outlive its removal", i));
    }
  }
  if (!removed.ok()) return;
  for (std::size_t i = 0; i < pages_.size(); ++i) {  // the removal commits
    if (pages_[i].is_placed) pages_[i].is_durable = true;
  }
}

void SlabSim::scrub() {
  SlotNumber slot = static_cast<SlotNumber>(draw(options_.slots));
  const auto fault = slab_->scrub(slot);
  if (!fault || *fault == StoreFault::kNone || *fault == StoreFault::kIo) return;
  if (flips_ == 0 && !has_crashed_) fail("the scrub calls a whole page damaged");
}

void SlabSim::close_and_open() {
  end_writes();
  held_.reset();
  if (slab_->close() == 0) {
    for (Page& page : pages_) page.is_durable = page.is_placed;
  } else {
    has_crashed_ = true;
  }
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    pages_[i].is_durable = pages_[i].is_durable && is_there(i);
  }
  if (disk_.is_dead()) {
    crash_and_open();
    return;
  }
  slab_.reset();
  disk_.faults = {};
  open();
  if (slab_ != nullptr && !disk_.is_dead()) check_durable();
}

void SlabSim::crash_and_open() {
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    pages_[i].is_durable = pages_[i].is_durable && is_there(i);
  }
  writing_.clear();
  held_.reset();
  slab_.reset();
  disk_.crash();
  ++crashes;
  has_crashed_ = true;
  disk_.faults = {};
  open();
  if (slab_ != nullptr) check_durable();
}

void SlabSim::check_durable() {
  std::uint64_t lost = 0;
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    Page& page = pages_[i];
    if (page.is_durable && flips_ == 0) {
      ++pages_durable_checked;
      read(i, true);
    }
    if (page.is_durable && !is_there(i)) ++lost;
    if (page.is_removed && is_there(i)) read(i, false);
    page.is_placed = page.is_durable = is_there(i) && page.is_durable;
  }
  if (lost > flips_) fail(fmt::format("{} flipped bits cost {} durable pages", flips_, lost));
}

}  // namespace pagoda::store
