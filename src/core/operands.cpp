#include "operands.h"

#include <cstdio>

#include "overlap.h"

namespace rbc {

const View& Operands::add(const View& view, const char* name) {
  if (count_ == kMax) fail(RBC_STATUS_INTERNAL, "%s: too many operands", name);
  requireReachable(context_, view, name);
  written_[count_] = false;
  streams_[count_] = static_cast<int8_t>(stream_);
  names_[count_] = name;
  views_[count_] = view;
  return views_[count_++];
}

const View& Operands::out(const rbcTensor* tensor, const char* name) {
  if (num_outputs_ == kMaxOutputs) fail(RBC_STATUS_INTERNAL, "%s: too many outputs", name);
  outputs_[num_outputs_++] = count_;
  const View& view = add(normalize(tensor, name), name);
  written_[count_ - 1] = true;
  return view;
}

void Operands::requireDisjoint(int one, int other) const {
  const View& a = views_[one];
  const View& b = views_[other];
  if (a.end <= b.begin || b.end <= a.begin) return;  // most are
  char name[64];
  if (streams_[one] < 0) {
    std::snprintf(name, sizeof name, "%s", names_[one]);
  } else {
    std::snprintf(name, sizeof name, "streams[%d].%s", streams_[one], names_[one]);
  }
  rbc::requireDisjoint(a, name, b, names_[other]);
}

void Operands::requireApart() const {
  for (int i = 0; i < num_outputs_; ++i) {
    requireDistinctElements(views_[outputs_[i]], names_[outputs_[i]]);
    for (int k = 0; k < i; ++k) requireDisjoint(outputs_[i], outputs_[k]);
  }
  for (int i = 0; i < count_; ++i) {
    for (int k = 0; k < num_outputs_ && !written_[i]; ++k) requireDisjoint(i, outputs_[k]);
  }
}

}  // namespace rbc
