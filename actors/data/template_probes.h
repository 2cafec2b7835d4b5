#pragma once

#include "actors/data/template_form.h"
#include "base/result.h"

namespace troupe {

/// Runs a chat template on a fixed set of chats (with and without a system turn, one question and many, images in every
/// place, blanks, thoughts and markup in the texts, contents as strings and as lists of parts, with and without the
/// opening of an answer) and holds what it writes against the form, byte by byte, and what its generation blocks mark
/// against what is learned. Sets the system turn that it adds to a chat without one. InvalidArgument with the first
/// chat that is not written so, or with the construct that is not known; the message goes on from "the chat template".
/// Takes milliseconds.
Status probe(TemplateForm& form);

/// The same for chats with videos, which a folder need not know unless its records have any. REQUIRES: `form` passed
/// `probe`.
Status probe_videos(const TemplateForm& form);

}  // namespace troupe
