#pragma once

#include <string>

#include "actors/data/record.h"
#include "actors/sources/tar_file.h"

namespace troupe {

/// Why nothing of a sample can be trained: it lies in pieces, has a member twice, has no record or several. Empty: its
/// one record is member KEY.json, whose own bytes are not looked at.
std::string sample_fault(const TarFile& shard, const TarFile::Sample& sample);

/// What lies beside the record of a sample. Of members that are named neither as pictures nor as videos the first bytes
/// are looked at.
MediaBeside media_beside(const TarFile& shard, const TarFile::Sample& sample);

}  // namespace troupe
