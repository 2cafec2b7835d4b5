#pragma once

/// Checkpoint folders know nothing of tensors, so that the driver can look for the latest one too: they live in base.
#include "base/checkpoint/checkpoint_folder.h"
