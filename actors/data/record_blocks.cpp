#include "actors/data/record_blocks.h"

#include <algorithm>

#include "actors/data/shard_samples.h"

namespace troupe {
namespace {

constexpr size_t kHashedAtOnce = size_t{64} << 20;

BlockKey key_of(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

}  // namespace

RecordBlocks::RecordBlocks(const MappedFile& file, const TarFile* shard, const RowFile* rows)
    : bytes_(file.bytes()), rows_(rows), whole_(XXH3_createState(), &XXH3_freeState) {
  XXH3_64bits_reset(whole_.get());
  if (shard == nullptr && rows == nullptr) {
    scanner_.emplace(bytes_);
    return;
  }
  hash_whole(file);
  if (shard != nullptr) find_samples(*shard);
  if (rows != nullptr && rows->rows() == 0) faults_.push_back({1, 1, "the file holds no record"});
}

void RecordBlocks::hash_whole(const MappedFile& file) {
  // A record of a shard may name any member, and what the bytes of a row mean stands at the file's end.
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (size_t at = 0; at < bytes_.size(); at += kHashedAtOnce) {
    const auto part = bytes_.substr(at, kHashedAtOnce);
    XXH3_128bits_update(state.get(), part.data(), part.size());
    XXH3_64bits_update(whole_.get(), part.data(), part.size());
    file.forget(at, at + part.size());
  }
  whole_hash_ = key_of(XXH3_128bits_digest(state.get()));
}

void RecordBlocks::find_samples(const TarFile& shard) {
  const auto samples = shard.samples();
  // Where one sample is in pieces, a part of any may lie behind the place where an archive breaks off.
  const bool any_apart = std::any_of(samples.begin(), samples.end(), [](const auto& sample) { return sample.apart; });
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto number = static_cast<int64_t>(i) + 1;
    std::string fault = sample_fault(shard, samples[i]);
    if (!shard.fault().empty() && (any_apart || i + 1 == samples.size()))
      fault = "may lack members, as the archive cannot be read behind it: " + shard.fault();
    if (!fault.empty()) {
      faults_.push_back({number, 1, "sample '" + samples[i].key + "' " + fault});
      continue;
    }
    const auto& of = samples[i].members;
    const auto record = std::find_if(of.begin(), of.end(),
                                     [&](size_t m) { return member_extension(shard.members()[m].name) == "json"; });
    const auto& member = shard.members()[*record];
    if (member.is_link() && member.fault.empty())
      faults_.push_back({number, 1, "member '" + member.name + "' is a link; valid: a file that holds the turns"});
    else if (member.fault.empty())
      samples_.push_back({static_cast<int64_t>(member.offset), static_cast<int64_t>(member.size), number, 1});
    else
      faults_.push_back({number, 1, "member '" + member.name + "' " + member.fault});
  }
  if (!samples.empty()) return;
  faults_.push_back(
      {1, 1, shard.fault().empty() ? "the archive holds no sample" : "the archive cannot be read: " + shard.fault()});
}

bool RecordBlocks::next_record(RecordSpan& span) {
  if (scanner_) return scanner_->next(span);
  if (rows_ != nullptr) {
    if (records_ == rows_->rows()) return false;
    span = {records_, 1, records_ + 1, 1};
    return true;
  }
  if (static_cast<size_t>(records_) == samples_.size()) return false;
  span = samples_[static_cast<size_t>(records_)];
  return true;
}

size_t RecordBlocks::end_of(const RecordSpan& span) const {
  if (scanner_) return scanner_->position();
  if (rows_ == nullptr) return static_cast<size_t>(span.offset + span.length);
  // Where a row's bytes lie in its group is not known; for how far things are, an even share does.
  return static_cast<size_t>(static_cast<double>(bytes_.size()) * static_cast<double>(span.offset + 1) /
                             static_cast<double>(rows_->rows()));
}

bool RecordBlocks::is_full(const RecordBlock& block) const {
  if (block.records.size() >= kMostRecords || at_ - block.begin >= (rows_ != nullptr ? kRowBlockBytes : kBlockBytes))
    return true;
  return rows_ != nullptr && !block.records.empty() &&
         std::binary_search(rows_->group_begins().begin(), rows_->group_begins().end(), records_);
}

bool RecordBlocks::next(RecordBlock& block) {
  block = {};
  if (done_) return false;
  block.first_record = records_;
  block.begin = at_;
  RecordSpan span;
  while (!is_full(block)) {
    done_ = !next_record(span);
    if (done_) break;
    block.records.push_back(span);
    ++records_;
    at_ = end_of(span);
  }
  if (done_) at_ = bytes_.size();
  if (done_ && scanner_ && scanner_->fault()) faults_.push_back(*scanner_->fault());
  block.end = at_;
  hash_content(block);
  return !block.records.empty();
}

void RecordBlocks::hash_content(RecordBlock& block) {
  const auto covered = bytes_.substr(block.begin, block.end - block.begin);
  if (whole_hash_) {
    block.content = *whole_hash_;
  } else {
    XXH3_64bits_update(whole_.get(), covered.data(), covered.size());
    block.content = key_of(XXH3_128bits(covered.data(), covered.size()));
  }
  std::vector<uint64_t> numbers(block.content.begin(), block.content.end());
  for (const auto& span : block.records)
    for (const int64_t number :
         {span.offset - static_cast<int64_t>(block.begin), span.length, span.line, span.column, span.element})
      numbers.push_back(static_cast<uint64_t>(number));
  block.content = key_of(XXH3_128bits(numbers.data(), numbers.size() * sizeof(uint64_t)));
}

}  // namespace troupe
