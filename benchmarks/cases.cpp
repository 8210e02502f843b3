#include "cases.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases_text.h"

namespace bench {

using support::Array;

namespace {

std::vector<const CaseKind*>& kinds() {
  static std::vector<const CaseKind*> all;
  return all;
}

}  // namespace

CaseKind::CaseKind(const char* its_mark, Parse its_parse) : mark(its_mark), parse(its_parse) {
  kinds().push_back(this);
}

CasePtr parseCase(const std::string& table, const std::string& name) {
  CaseKind::Parse parse = parseResampling;
  size_t longest = 0;  // a name may contain several marks: the longest decides
  for (const CaseKind* kind : kinds()) {
    const std::string mark = kind->mark;
    if (mark.size() <= longest || name.find(mark) == std::string::npos) continue;
    longest = mark.size();
    parse = kind->parse;
  }
  std::shared_ptr<Case> c = parse(name);
  c->table = table;
  c->name = name;
  return c;
}

std::vector<CasePtr> casesOf(const std::string& user) {
  const std::string between = " | ";
  std::vector<CasePtr> cases;
  std::istringstream lines(kCasesText);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream columns(line);
    std::string table, users, names;
    std::getline(columns >> table >> users >> std::ws, names);
    if (("," + users + ",").find("," + user + ",") == std::string::npos) continue;
    for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + between.size()) {
      end = names.find(between, begin);
      cases.push_back(parseCase(table, names.substr(begin, end - begin)));
    }
  }
  return cases;
}

const Data& dataOf(const CasePtr& c) {
  static CasePtr last;
  static std::unique_ptr<const Data> data;
  if (last == nullptr || last->id() != c->id()) {
    data.reset();
    data = c->load();
    last = c;
    constexpr double kMinInRange = 0.99;
    if (data->in_range < kMinInRange)
      throw std::runtime_error("only " + std::to_string(data->in_range) + " is in range");
  }
  return *data;
}

// Aligned to a page.
const Array& Data::addInput(const char* name, rbcDType dtype, std::vector<int64_t> shape) {
  using support::Layout;
  inputs.emplace_back(name,
                      Array(dtype, std::move(shape), Layout::kContiguous, support::Flush::kBegin));
  return inputs.back().second;
}

void Data::addOutput(rbcDType dtype, std::vector<int64_t> shape) {
  outputs.emplace_back(dtype, std::move(shape), support::Layout::kContiguous,
                       support::Flush::kBegin);
  if (accumulates)
    std::fill_n(outputs.back().memory().data(), outputs.back().memory().bytes(), std::byte{0});
}

void Data::answer() {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 1;
  params.simd = RBC_SIMD_PORTABLE;
  const robocache::Context context(params);
  Tensors tensors;
  for (const auto& [name, array] : inputs) tensors.inputs.emplace_back(array.tensor());
  for (const Array& array : outputs) tensors.outputs.emplace_back(array.tensor());
  (*callOn(tensors))(context);
}

}  // namespace bench
