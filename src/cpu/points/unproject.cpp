// Converts depth images to clouds on the CPU: bands of rows, counted first if an image has several.

#include <algorithm>

#include "runtime/cpu_state.h"
#include "scratch_layout.h"
#include "unproject_problem.h"
#include "visit_dtype.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kBandPixels = 1 << 15;  // about 100 us

// Bands of the visited rows of images.
struct Bands {
  int64_t rows;      // per band, except the last of an image
  int64_t an_image;  // bands per image

  explicit Bands(const UnprojectProblem& p)
      : rows(std::clamp<int64_t>(kBandPixels / std::max<int64_t>(1, p.columns()), 1,
                                 std::max<int64_t>(1, p.rows()))),
        an_image(std::max<int64_t>(1, (p.rows() + rows - 1) / rows)) {}
};

template <class Number, class Depth>
struct Image {
  const UnprojectProblem& p;
  const DepthRules<Number> rules;
  const Pinhole<Number> camera;
  const int64_t number;

  Image(const UnprojectProblem& problem, int64_t image)
      : p(problem),
        rules(rulesAs<Number>(problem)),
        camera(cameraOf<Number>(problem, image)),
        number(image) {}

  // Calls keep(row, column, point) for the points of a band, in order.
  template <class Keep>
  void visit(const Bands& bands, int64_t band, Keep&& keep) const {
    const auto* depth = static_cast<const Depth*>(p.depth.data) + number * p.depth.stride[0];
    const int64_t end = std::min(p.rows(), (band + 1) * bands.rows);
    for (int64_t i = band * bands.rows; i < end; ++i) {
      const int64_t row = i * p.step;
      const auto ray_y = ray(static_cast<Number>(row), rules.pixel_offset, camera.centre[1]);
      const Depth* line = depth + row * p.depth.stride[1];
      for (int64_t column = 0; column < p.width; column += p.step) {
        const auto ray_x = ray(static_cast<Number>(column), rules.pixel_offset, camera.centre[0]);
        const auto d = static_cast<Number>(widen(line[column * p.depth.stride[2]]));
        Number point[3];
        if (unproject(camera, rules, d, ray_x, ray_y, point)) keep(row, column, point);
      }
    }
  }

  int64_t count(const Bands& bands, int64_t band) const {
    int64_t points = 0;
    visit(bands, band, [&](int64_t, int64_t, const Number(&)[3]) { ++points; });
    return points;
  }

  // Writes the points of a band, starting at place `first`, as far as there is room. Returns the
  // number of points found.
  template <class Element>
  int64_t write(const Bands& bands, int64_t band, int64_t first) const {
    int64_t place = first;
    auto* points = static_cast<Element*>(p.points.data) + number * p.points.stride[0];
    const auto color_divisor = static_cast<Number>(p.color_divisor);
    visit(bands, band, [&](int64_t row, int64_t column, const Number(&point)[3]) {
      const int64_t at = place++;
      if (at >= p.capacity) return;
      Element* out = points + at * p.points.stride[1];
      for (int i = 0; i < 3; ++i) out[i * p.points.stride[2]] = narrow<Element>(point[i]);
      if (p.channels > 0) {
        const int64_t color =
            number * p.colors.stride[0] + row * p.colors.stride[1] + column * p.colors.stride[2];
        for (int64_t c = 0; c < p.channels; ++c) {
          const auto x = colorAt<Number>(p.colors, color + c * p.colors.stride[3]);
          out[(3 + c) * p.points.stride[2]] = narrow<Element>(x / color_divisor);
        }
      }
      putPixel(at, row * p.width + column);
    });
    return place - first;
  }

  // Fills the rest of an image's rows, after its points.
  template <class Element>
  void finish(int64_t points) const {
    const int64_t kept = std::min(points, p.capacity);
    auto* out = static_cast<Element*>(p.points.data) + number * p.points.stride[0];
    for (int64_t i = kept; i < p.capacity; ++i) {
      for (int64_t c = 0; c < 3 + p.channels; ++c) {
        out[i * p.points.stride[1] + c * p.points.stride[2]] = Element{};
      }
      putPixel(i, -1);
    }
    static_cast<int64_t*>(p.counts.data)[number * p.counts.stride[0]] = kept;
    if (p.over_capacity.data != nullptr) {
      static_cast<int64_t*>(p.over_capacity.data)[number * p.over_capacity.stride[0]] =
          points - kept;
    }
  }

  void putPixel(int64_t place, int64_t pixel) const {
    if (p.pixels.data == nullptr) return;
    const int64_t at = number * p.pixels.stride[0] + place * p.pixels.stride[1];
    if (p.pixels.dtype == DType::I64) {
      static_cast<int64_t*>(p.pixels.data)[at] = pixel;
    } else {
      static_cast<int32_t*>(p.pixels.data)[at] = static_cast<int32_t>(pixel);
    }
  }
};

size_t bytes(const BackendState&, const UnprojectProblem& p) {
  ScratchLayout layout(nullptr);
  layout.take<int64_t>(p.images * Bands(p).an_image);
  return layout.used();
}

template <class Number, class Depth, class Element>
void runAs(CpuState& state, const UnprojectProblem& p, int64_t* counts) {
  using Camera = Image<Number, Depth>;
  const Bands bands(p);
  const int threads = state.pool.threads();
  if (p.images >= threads) {
    // One thread per image, which processes its bands in order: nothing has to be counted first.
    state.pool.parallelFor(p.images, threads, [&](int64_t i) {
      const Camera image(p, i);
      int64_t points = 0;
      for (int64_t band = 0; band < bands.an_image; ++band) {
        points += image.template write<Element>(bands, band, points);
        if (state.pool.stopsAt(-1)) return;
      }
      image.template finish<Element>(points);
    });
    return;
  }
  const int64_t all = p.images * bands.an_image;
  state.pool.parallelFor(all, threads, [&](int64_t i) {
    counts[i] = Camera(p, i / bands.an_image).count(bands, i % bands.an_image);
  });
  for (int64_t i = 0; i < p.images; ++i) {
    int64_t points = 0;
    for (int64_t band = 0; band < bands.an_image; ++band) {
      int64_t& count = counts[i * bands.an_image + band];
      const int64_t first = points;
      points += count;
      count = first;
    }
    Camera(p, i).template finish<Element>(points);
  }
  state.pool.parallelFor(all, threads, [&](int64_t i) {
    Camera(p, i / bands.an_image).template write<Element>(bands, i % bands.an_image, counts[i]);
  });
}

void run(BackendState& backend_state, const UnprojectProblem& p, Scratch scratch) {
  CpuState& state = cpuState(backend_state);
  auto* counts = ScratchLayout(scratch.data).take<int64_t>(p.images * Bands(p).an_image);
  visitDepth(p.depth.dtype, [&](auto depth) {
    visitFloat(p.points.dtype, [&](auto element) {
      using Element = typename decltype(element)::type;
      runAs<Compute<Element>, typename decltype(depth)::type, Element>(state, p, counts);
    });
  });
}

}  // namespace

extern const Operation<UnprojectProblem> kUnproject = {bytes, run};

}  // namespace rbc::cpu
