#include "actors/host/step_feed.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

namespace troupe {
namespace {

constexpr size_t kLeastAhead = 2;  // whatever they take
constexpr size_t kAheadBytes = 16 << 20;

/// What a prepared step holds.
size_t input_bytes(const StepInput& input) {
  size_t bytes =
      sizeof(StepPlan) + input.plan.samples.size() * sizeof(int64_t) + input.plan.images.size() * sizeof(StepImage);
  for (const auto& units : input.vision)
    for (const VisionUnitInput& unit : units) bytes += unit.patches.nbytes();
  for (const auto& units : input.text)
    for (const TextUnitBatch& unit : units)
      bytes += unit.ids.nbytes() + unit.positions.nbytes() + unit.loss_rows.nbytes() + unit.targets.nbytes();
  return bytes;
}

at::Tensor int64_tensor(const std::vector<int64_t>& values) {
  at::Tensor t = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), t.data_ptr<int64_t>());
  return t;
}

/// Runs work(0..n-1) on `threads` threads; the first error wins.
Status for_each_index(int threads, size_t n, const std::function<Status(size_t)>& work) {
  if (threads <= 1 || n <= 1) {
    for (size_t i = 0; i < n; ++i) TROUPE_RETURN_IF_ERROR(work(i));
    return {};
  }
  std::vector<Status> outcomes(n);
  std::atomic<size_t> next{0};
  std::vector<std::thread> pool;
  for (size_t t = 0; t < std::min(static_cast<size_t>(threads), n); ++t)
    pool.emplace_back([&] {
      for (size_t i = next++; i < n; i = next++) outcomes[i] = work(i);
    });
  for (std::thread& t : pool) t.join();
  for (const Status& s : outcomes) TROUPE_RETURN_IF_ERROR(s);
  return {};
}

/// An image's patches, as many as the index says.
Result<at::Tensor> indexed_patches(const Dataset& data, int64_t sample, int image, int64_t patches) {
  TROUPE_ASSIGN(at::Tensor read, data.patches(sample, image));
  if (read.size(0) != patches)
    return data_loss("sample " + std::string(data.index().samples[static_cast<size_t>(sample)].id) + ": image " +
                     std::to_string(image) + " has " + std::to_string(read.size(0)) + " patches, the index says " +
                     std::to_string(patches) + " (did the file change after indexing?)");
  return read;
}

/// A sample's tokens, as many as the index says.
Result<TokenizedSample> indexed_tokens(const Dataset& data, int64_t number) {
  TROUPE_ASSIGN(TokenizedSample sample, data.tokens(number));
  const SampleView indexed = data.index().samples[static_cast<size_t>(number)];
  if (static_cast<int64_t>(sample.ids.size()) != indexed.tokens)
    return data_loss("sample " + std::string(indexed.id) + " has " + std::to_string(sample.ids.size()) +
                     " tokens, the index says " + std::to_string(indexed.tokens) +
                     " (did a file change after indexing?)");
  return sample;
}

/// The rows of the unit's images that this rank works on; images of which it holds nothing are not decoded.
Result<VisionUnitInput> vision_input(const JobContext& job, const Dataset& data, const StepPlan& plan,
                                     const FeedMember& member, int unit,
                                     const std::vector<std::pair<int64_t, int>>& image_of, BadSamples* bad) {
  const Mesh& mesh = job.group(member.group).mesh;
  const int lane = mesh.coordinate(member.rank, Axis::kDp), sp_rank = mesh.coordinate(member.rank, Axis::kSp);
  VisionUnitInput input;
  input.layout = vision_unit_layout(job.config.vision, plan, lane, unit, mesh.size(Axis::kSp));
  const std::vector<int64_t> wanted = local_patches(job.config.vision, input.layout, sp_rank);
  const auto& images = plan.vision[static_cast<size_t>(lane)][static_cast<size_t>(unit)].images;
  std::vector<int64_t> starts = {0};
  for (const IndexedImage& grid : input.layout.images) starts.push_back(starts.back() + grid.patches());
  // Local positions and image-relative patch numbers, image by image.
  std::vector<std::vector<int64_t>> targets(images.size()), sources(images.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto image =
        static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), wanted[i]) - starts.begin() - 1);
    targets[image].push_back(static_cast<int64_t>(i));
    sources[image].push_back(wanted[i] - starts[image]);
  }
  input.patches = at::empty({static_cast<int64_t>(wanted.size()), job.config.vision.patch_dim()}, at::kFloat);
  const int threads = job.spec.data.workers > 0 ? job.spec.data.workers : 1;
  TROUPE_RETURN_IF_ERROR(for_each_index(threads, images.size(), [&](size_t i) -> Status {
    if (targets[i].empty()) return {};
    const auto at_image = static_cast<size_t>(images[i]);
    const StepImage& image = plan.images[at_image];
    const std::pair<int64_t, int> seen =
        image_of.empty() ? std::pair<int64_t, int>(plan.samples[static_cast<size_t>(image.sample)], image.image)
                         : image_of[at_image];
    const Result<at::Tensor> read = indexed_patches(data, seen.first, seen.second, image.grid.patches());
    if (!read.ok()) return bad ? bad->note(seen.first, read.error()) : Status(read.error());
    const at::Tensor& patches = *read;
    const auto row_bytes = static_cast<size_t>(patches.size(1)) * sizeof(float);
    const auto* from = static_cast<const char*>(patches.const_data_ptr());
    auto* to = static_cast<char*>(input.patches.mutable_data_ptr());
    for (size_t r = 0; r < targets[i].size(); ++r)
      std::copy_n(from + static_cast<size_t>(sources[i][r]) * row_bytes, row_bytes,
                  to + static_cast<size_t>(targets[i][r]) * row_bytes);
    return {};
  }));
  return input;
}

/// Undefined when all are 1, the common case: then nothing is multiplied.
at::Tensor unequal_weights(const std::vector<float>& weights) {
  if (std::all_of(weights.begin(), weights.end(), [](float weight) { return weight == 1; })) return {};
  at::Tensor out = at::empty({static_cast<int64_t>(weights.size())}, at::kFloat);
  std::copy(weights.begin(), weights.end(), out.data_ptr<float>());
  return out;
}

Result<TextUnitBatch> text_input(const JobContext& job, const Dataset& data, const StepPlan& plan,
                                 const FeedMember& member, int unit, BadSamples* bad) {
  const Mesh& mesh = job.group(member.group).mesh;
  const int lane = mesh.coordinate(member.rank, Axis::kDp);
  TextUnitBatch batch;
  batch.sequence_starts = {0};
  std::vector<int64_t> ids, loss_rows, targets;
  std::vector<float> weights;
  std::array<std::vector<int64_t>, 3> positions;
  int64_t sequence = 0;
  for (int32_t s : plan.text[static_cast<size_t>(lane)][static_cast<size_t>(unit)].samples) {
    const int64_t number = plan.samples[static_cast<size_t>(s)];
    const Result<TokenizedSample> read = indexed_tokens(data, number);
    if (!read.ok()) {
      TROUPE_RETURN_IF_ERROR(bad ? bad->note(number, read.error()) : Status(read.error()));
      continue;
    }
    const TokenizedSample& sample = *read;
    const int64_t begin = batch.sequence_starts.back();
    for (size_t i = 0; i < sample.ids.size(); ++i) {
      ids.push_back(sample.ids[i]);
      for (size_t row = 0; row < 3; ++row) positions[row].push_back(sample.positions[i][row]);
      if (i > 0 && sample.supervised[i]) {  // shifted within the sample: the row before predicts this token
        loss_rows.push_back(begin + static_cast<int64_t>(i) - 1);
        targets.push_back(sample.ids[i]);
        batch.loss_samples.push_back(sequence);
        weights.push_back(sample.weights.empty() ? 1.0F : sample.weights[i]);
      }
    }
    batch.sequence_starts.push_back(begin + static_cast<int64_t>(sample.ids.size()));
    ++sequence;
  }
  batch.ids = int64_tensor(ids);
  batch.positions = at::empty({3, static_cast<int64_t>(ids.size())}, at::kLong);
  for (size_t row = 0; row < 3; ++row)
    std::copy(positions[row].begin(), positions[row].end(), batch.positions.data_ptr<int64_t>() + row * ids.size());
  batch.loss_rows = int64_tensor(loss_rows);
  batch.targets = int64_tensor(targets);
  batch.loss_weights = unequal_weights(weights);
  const ConsumerRows rows = consumer_rows(plan, data.index(), job.config.vision.merge_size, lane, unit);
  batch.vision_positions = int64_tensor(rows.positions);
  return batch;
}

/// Whether the record's own bytes or files are at fault: other errors (memory, a bug) would hit any record.
bool is_of_record(ErrorCode code) {
  return code == ErrorCode::kDataLoss || code == ErrorCode::kInvalidArgument || code == ErrorCode::kNotFound ||
         code == ErrorCode::kUnimplemented;
}

}  // namespace

Status BadSamples::note(int64_t sample, const Error& error) {
  if (!is_of_record(error.code)) return error;
  const std::lock_guard lock(mutex_);
  found_.emplace(sample, error);
  return {};
}

Result<StepInput> make_step_input(const JobContext& job, const Dataset& data, StepPlan plan,
                                  const std::vector<FeedMember>& members,
                                  const std::vector<std::pair<int64_t, int>>& image_of, BadSamples* bad) {
  StepInput input;
  input.vision.resize(members.size());
  input.text.resize(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    if (members[m].group == job.encoder) {
      for (int u = 0; u < plan.vision_units(); ++u) {
        TROUPE_ASSIGN(VisionUnitInput unit, vision_input(job, data, plan, members[m], u, image_of, bad));
        input.vision[m].push_back(std::move(unit));
      }
    } else {
      for (int u = 0; u < plan.text_units(); ++u) {
        TROUPE_ASSIGN(TextUnitBatch unit, text_input(job, data, plan, members[m], u, bad));
        input.text[m].push_back(std::move(unit));
      }
    }
  }
  input.plan = std::move(plan);
  return input;
}

StepFeed::StepFeed(const JobContext& job, std::vector<FeedMember> members, int64_t first_step, int64_t last_step,
                   size_t ahead)
    : job_(job),
      members_(std::move(members)),
      ahead_(std::max<size_t>(1, ahead)),
      planner_(job.data->index(), job.training_samples,
               batch_plan_options(job.spec, job.config.vision, job.epoch_samples)),
      next_(first_step),
      thread_([=, this] { run(first_step, last_step); }) {}

StepFeed::~StepFeed() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<StepInput> StepFeed::prepare(int64_t step, BadSamples& bad) {
  const bool skip = job_.spec.data.on_bad_record == OnBadRecord::kSkip;
  try {
    return make_step_input(job_, *job_.data, planner_.plan(step), members_, {}, skip ? &bad : nullptr);
  } catch (const std::exception& e) {
    return internal_error("preparing step " + std::to_string(step) + ": " + e.what());
  }
}

Result<StepInput> StepFeed::without(const StepPlan& plan, const std::vector<int64_t>& samples) const {
  try {
    return make_step_input(job_, *job_.data, planner_.without(plan, samples), members_, {});
  } catch (const std::exception& e) {
    return internal_error("preparing step " + std::to_string(plan.step) + " without its bad records: " + e.what());
  }
}

void StepFeed::run(int64_t first_step, int64_t last_step) {
  for (int64_t step = first_step; step <= last_step; ++step) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || wants_more(); });
      if (stopped_) return;
    }
    BadSamples bad;
    Result<StepInput> input = prepare(step, bad);
    std::vector<int64_t> numbers;
    for (const auto& [sample, error] : bad.found()) {
      numbers.push_back(sample);
      std::fprintf(stderr, "step %lld: record '%s' is left out: %s\n", static_cast<long long>(step),
                   std::string(job_.data->index().samples[static_cast<size_t>(sample)].id).c_str(),
                   error.to_string().c_str());
    }
    const bool good = input.ok();
    {
      const std::lock_guard lock(mutex_);
      ready_bytes_.push_back(good ? input_bytes(*input) : 0);
      bytes_ += ready_bytes_.back();
      ready_.push_back(std::move(input));
      full_ = ready_.size() >= ahead_ || bytes_ >= kAheadBytes;
      ended_ = !good || step == last_step;
    }
    changed_.notify_all();
    if (!good) return;
    job_.control->report_prepared(step, numbers);
  }
}

bool StepFeed::wants_more() const {
  if (ready_.size() < std::min(kLeastAhead, ahead_)) return true;
  if (full_) return ready_.size() < ahead_ / 2 && bytes_ < kAheadBytes / 2;
  return ready_.size() < ahead_ && bytes_ < kAheadBytes;
}

Result<StepInput> StepFeed::take(std::chrono::milliseconds timeout) {
  // Who asks a host to stop does not know this feed: it is looked at between short waits.
  constexpr std::chrono::milliseconds kSlice{100};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(mutex_);
  while (ready_.empty()) {
    if (ended_) return make_error(ErrorCode::kFailedPrecondition, "the input of every step has been taken");
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline)
      return deadline_exceeded("the input of step " + std::to_string(next_) + " was not read and decoded within " +
                               std::to_string(timeout.count()) + " ms");
    if (job_.control->stop_requested()) return cancelled("the job is stopping");
    changed_.wait_until(lock, std::min(deadline, now + kSlice), [&] { return !ready_.empty() || ended_; });
  }
  ++next_;
  Result<StepInput> input = std::move(ready_.front());
  ready_.pop_front();
  bytes_ -= ready_bytes_.front();
  ready_bytes_.pop_front();
  if (wants_more()) changed_.notify_all();
  return input;
}

}  // namespace troupe
