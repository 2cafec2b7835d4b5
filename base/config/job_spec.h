#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config/key_places.h"
#include "base/mesh/mesh.h"
#include "base/result.h"

/// The job spec as a value: what a person writes in JOB.yaml, with every default filled in. docs/job-spec.md is the
/// reference. Parsing, `--set`, suggestions for misspelt keys and writing back live in base/config/job_spec_parser.h.
namespace troupe {

enum class ModelInit { kPretrained, kRandom };
enum class DType { kFp32, kBf16, kBf16Pure };
enum class PlacementKind { kColocated, kDisjoint, kCounts, kExplicit };
/// How rows cross between processes: in memory that both map or whatever UCX finds, or by one of UCX's ways alone.
enum class BoundaryChannel { kAuto, kSharedMemory, kTcp };
enum class ScheduleKind { kCosine, kLinear, kConstant };
enum class TooLong { kFail, kSkip, kTruncateText };
enum class OnBadRecord { kFail, kSkip };
enum class Supervise { kAll, kLast };

struct ModelSpec {
  std::string path;  // Hugging Face folder, absolute
  ModelInit init = ModelInit::kPretrained;
  DType dtype = DType::kBf16;
};

/// Training of one component: "vision", "merger" or "text".
struct ComponentSpec {
  bool train = true;
  std::optional<double> lr;  // training.optimizer.lr when absent
};

struct GroupSpec {
  std::string name;
  std::vector<std::string> components;
  Mesh mesh;
  int zero = 1;
  bool tp_sequence = false;
  /// Vision groups only: images in a unit; 0: the images of one text microbatch over all lanes.
  int unit_images = 0;
};

struct PlacementSpec {
  PlacementKind kind = PlacementKind::kColocated;
  std::map<std::string, int> counts;                      // kCounts: slots of each group
  std::map<std::string, std::vector<std::string>> slots;  // kExplicit: "node:index", "node:0-3", "node:*"
};

/// Spellings of a source beside those that are always understood (docs/data.md): `columns` is the key of a meaning, ""
/// for one that is not read, and `ignored` keys, with commas between, that mean nothing; `roles` the meaning of a word
/// for a speaker.
struct RecordSpelling {
  std::map<std::string, std::string> columns, roles;
};

struct DataSource {
  std::string path;        // absolute
  std::string image_root;  // absolute; the folder of `path` when not given
  double take_fraction = 1.0;
  int64_t take_records = -1;  // >= 0: that many records instead of the fraction
  RecordSpelling spelling = {};
  std::string key = {};  // where the spec names it, such as "data.sources[0]"
  double weight = 1;     // how often each of its records counts in a data epoch; of data.sources only
};

struct SyntheticData {
  int images = 1;
  int height = 448, width = 448;  // pixels
  int text_tokens = 512;
  int64_t samples = 4096;
};

/// How videos are read; what is absent comes from the model folder's processor file, else from its defaults.
struct VideoSpec {
  std::optional<double> fps;  // frames a second
  std::optional<int64_t> min_frames, max_frames;
  std::optional<int64_t> min_pixels, max_pixels;  // of a frame
  bool given() const { return fps || min_frames || max_frames || min_pixels || max_pixels; }
};

struct DataSpec {
  std::vector<DataSource> sources;
  std::optional<SyntheticData> synthetic;
  bool shuffle = true;
  int64_t max_sample_tokens = 8192;
  TooLong too_long = TooLong::kFail;
  int64_t pack_tokens = 0;
  bool balance = true;      // samples and images go to lanes by cost
  int64_t sort_window = 0;  // global batches within which samples are sorted by tokens; 0: not sorted
  std::optional<int64_t> min_pixels, max_pixels;  // absent: the model folder's preprocessor_config.json
  VideoSpec video;
  Supervise supervise = Supervise::kAll;
  OnBadRecord on_bad_record = OnBadRecord::kFail;
  int workers = 0;  // decode threads a host; 0: auto
};

struct EvalSpec {
  double split = 0;  // fraction held out from data.sources
  std::vector<DataSource> sources;
  int64_t every = 0;        // steps; 0: never while training
  int64_t max_samples = 0;  // 0: all
};

struct OptimizerSpec {
  double lr = 1e-5;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;  // 0: off
};

struct ScheduleSpec {
  ScheduleKind type = ScheduleKind::kCosine;
  double warmup_ratio = 0;
  std::optional<int64_t> warmup_steps;
  double min_ratio = 0;
};

struct TrainingSpec {
  std::optional<int64_t> steps;
  std::optional<double> epochs;
  int64_t global_batch = 1;        // samples
  int64_t microbatch_samples = 1;  // sequences (samples, or packs when pack_tokens > 0) in a text unit
  int64_t microbatch_tokens = 0;   // > 0: token budget of a text unit instead
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  uint64_t seed = 1;
  int max_skipped = 5;
  int64_t bucket_bytes = int64_t{32} << 20;  // of gradients reduced as one, beside the backward pass
};

struct CheckpointSpec {
  int64_t every = 0;  // steps; 0: none while training
  int keep = 3;
  bool export_at_end = true;
};

struct DebugDump {
  std::vector<int64_t> steps;
  bool gradients = false, vision_rows = false, samples = false, weights = false;
};

/// Steps that are traced (docs/trace.md).
struct ProfileSpec {
  int64_t first = 0, last = -1;    // none unless last >= first
  std::vector<std::string> ranks;  // "GROUP/RANK"; empty: all
  bool on() const { return last >= first; }
};

struct JobSpec {
  std::string name;
  std::string file;  // absolute path of the JOB.yaml; empty when made in memory
  ModelSpec model;
  std::map<std::string, ComponentSpec> components;  // always vision, merger, text
  std::vector<GroupSpec> groups;                    // in the spec's order
  PlacementSpec placement;
  DataSpec data;
  EvalSpec eval;
  TrainingSpec training;
  CheckpointSpec checkpoint;
  int64_t log_every = 1;
  std::string device = "auto";  // auto | cpu | cuda
  int threads = 0;              // intra-op threads a slot on CPUs; 0: shared out evenly
  int credits = 2;  // schedule.credits: units the encoder may hold between forward and backward (0, colocated: all)
  BoundaryChannel channel = BoundaryChannel::kAuto;  // schedule.channel
  double memory_gib = 0;  // schedule.memory_gib: what a rank of it may keep for them; 0: no bound
  DebugDump debug;
  ProfileSpec profile;
  std::vector<std::string>
      warnings;      // found while loading (optional files that are missing); not part of the written spec
  KeyPlaces places;  // where its keys were written; nothing when made in memory

  const GroupSpec* group_of_component(const std::string& component) const;
};

}  // namespace troupe
