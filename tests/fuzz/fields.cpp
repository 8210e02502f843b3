#include "fuzz/fields.h"

#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "robocache/robocache.h"

namespace fuzz {
namespace {

class Fields {
 public:
  Fields(){
#define FIELD(type, name, offset, ...) add<__VA_ARGS__>(#type, #name, offset)
#include "layouts.inc"
  }

  std::map<std::string, std::vector<Field>> of;
  std::set<std::string> names;

 private:
  template <class T>
  void add(const char* owner, const char* name, size_t offset) {
    names.insert(name);
    if constexpr (std::is_array_v<T>) {
      using Element = std::remove_extent_t<T>;
      for (size_t i = 0; i < std::extent_v<T>; ++i) {
        add<Element>(owner, name, offset + i * sizeof(Element));
      }
    } else if constexpr (std::is_same_v<T, const rbcTensor*>) {
      of[owner].push_back({owner, name, offset, sizeof(T), Field::kTensor});
    } else if constexpr (std::is_floating_point_v<T>) {
      of[owner].push_back({owner, name, offset, sizeof(T), Field::kReal});
    } else if constexpr (std::is_integral_v<T>) {
      of[owner].push_back({owner, name, offset, sizeof(T), Field::kInteger});
    } else if constexpr (std::is_same_v<T, rbcDType>) {
      of[owner].push_back({owner, name, offset, 1, Field::kInteger});
      of[owner].push_back({owner, name, offset + 1, 1, Field::kInteger});
      of[owner].push_back({owner, name, offset + 2, 2, Field::kInteger});
    } else if constexpr (std::is_same_v<T, rbcVoxelGrid>) {
      add<double[3]>(owner, "origin", offset);
      add<double[3]>(owner, "voxel_size", offset + 24);
      add<int64_t[3]>(owner, "shape", offset + 48);
    }
  }
};

const Fields& all() {
  static const Fields fields;
  return fields;
}

}  // namespace

const std::vector<Field>& fieldsOf(const std::string& owner) {
  static const std::vector<Field> none;
  const auto found = all().of.find(owner);
  return found != all().of.end() ? found->second : none;
}

const std::set<std::string>& fieldNames() { return all().names; }

}  // namespace fuzz
