#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "actors/data/record.h"
#include "actors/data/template_form.h"
#include "base/result.h"

namespace troupe {

/// Holds what a chat template writes for records against the form. A shape of chat (who speaks, and where texts, images
/// and videos stand) is tried once, with texts that differ from each other: if the template writes them as the form
/// does and looks at none of them, it does so with all others. Records of other shapes are rendered one by one.
/// Thread-safe; the answer depends on the record alone.
class TemplateShapes {
 public:
  explicit TemplateShapes(std::shared_ptr<const TemplateForm> form) : form_(std::move(form)) {}
  /// InvalidArgument with the first difference; the message goes on from "the chat template". Cost: a look-up, or one
  /// rendering.
  Status check(const Record& record) const;

 private:
  bool is_sure(const Record& record, Contents contents) const;

  std::shared_ptr<const TemplateForm> form_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, bool> sure_;  // of each shape that was tried
};

}  // namespace troupe
