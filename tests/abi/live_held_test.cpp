// Live fusion while one of its threads is stopped in the middle of a call: no other thread waits
// for it, and calls that only one thread may make are refused.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "abi/live_call.h"

namespace {

using live_call::countersOf;
using live_call::hostTensor;
using live_call::Live;
using live_call::make;
using support::Context;

// A page that makes a thread that touches it wait until it is released.
class HeldPage {
 public:
  HeldPage() : bytes_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    page = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    size = bytes_;
    held = false;
    let_go = false;
    struct sigaction action = {};
    action.sa_handler = wait;
    REQUIRE(sigaction(SIGSEGV, &action, &before_) == 0);
  }
  ~HeldPage() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(page, bytes_);
  }
  HeldPage(const HeldPage&) = delete;

  void* get() const { return page; }
  void awaitThread() const {
    while (!held) std::this_thread::yield();
  }
  void letGo() const { let_go = true; }

 private:
  static void wait(int) {
    held = true;
    while (!let_go) usleep(1000);
    mprotect(page, size, PROT_READ | PROT_WRITE);
  }

  static inline void* page;
  static inline size_t size;
  static inline std::atomic<bool> held;
  static inline std::atomic<bool> let_go;
  size_t bytes_;
  struct sigaction before_ = {};
};

struct Rig {
  Context context = support::cpuContext(1);
  Live live;
  double time = 0;
  float value = 0;
  double query = 1.5;
  float out = -1;
  double age = -1;
  int64_t one[2] = {1, 1};

  explicit Rig(int64_t late_bound = 0) {
    rbcLiveStream stream = rbcLiveStreamInit();
    stream.num_channels = 1;
    stream.capacity = 4;
    stream.late_bound = late_bound;
    live = make(context, {stream}, rbcLiveParamsInit());
  }

  rbcStatus_t push(double at, float sample) {
    time = at;
    value = sample;
    return pushFrom(&time, &value);
  }
  rbcStatus_t pushFrom(void* at, void* sample) {
    const rbcTensor times = hostTensor(at, support::kF64, 1, one);
    const rbcTensor values = hostTensor(sample, support::kF32, 2, one);
    return rbcLivePush(live.get(), 0, &values, &times, nullptr);
  }
  rbcStatus_t fuseTo(void* to) {
    const rbcTensor queries = hostTensor(&query, support::kF64, 1, one);
    const rbcTensor outs = hostTensor(to, support::kF32, 2, one);
    const rbcTensor ages = hostTensor(&age, support::kF64, 1, one);
    return rbcLiveFuse(live.get(), &queries, &outs, nullptr, &ages, nullptr);
  }
};

}  // namespace

TEST_CASE("live: a producer held in the middle of a sample") {
  Rig rig;
  CHECK_SUCCEEDS(rig.push(1, 10));
  CHECK_SUCCEEDS(rig.push(2, 20));
  HeldPage page;
  double at = 3;
  rbcStatus_t pushed = RBC_STATUS_INTERNAL;
  std::thread producer([&] { pushed = rig.pushFrom(&at, page.get()); });
  page.awaitThread();

  // The consumer takes the complete samples.
  CHECK_SUCCEEDS(rig.fuseTo(&rig.out));
  CHECK(rig.out == 15);
  CHECK(rig.age == 0.5);
  CHECK_FAILS(rig.push(4, 40), RBC_STATUS_UNSUPPORTED, "stream", "another thread is pushing");
  CHECK_FAILS(rbcLiveReset(rig.live.get(), 0), RBC_STATUS_UNSUPPORTED, "stream",
              "another thread is pushing");
  CHECK_FAILS(rbcLiveDestroy(rig.live.get()), RBC_STATUS_UNSUPPORTED, "live",
              "a thread is pushing to stream 0");
  CHECK(countersOf(rig.live, 0).kept == 2);
  CHECK(countersOf(rig.live, 0).forgotten == 0);

  page.letGo();
  producer.join();
  CHECK(pushed == RBC_STATUS_SUCCESS);
  CHECK(countersOf(rig.live, 0).kept == 3);
  CHECK_SUCCEEDS(rig.push(4, 40));
  rig.query = 3.5;
  CHECK_SUCCEEDS(rig.fuseTo(&rig.out));
  CHECK(rig.out == 20);  // the sample of the page is 0
  CHECK_SUCCEEDS(rbcLiveReset(rig.live.get(), 0));
  CHECK(countersOf(rig.live, 0).forgotten == 4);
}

// A late sample made the ring copy itself: the copy is written except the sample on the page.
TEST_CASE("live: a producer held while the ring is copied") {
  Rig rig(2);
  for (const double at : {0., 1., 2., 3., 1.5, 4.}) {
    CHECK_SUCCEEDS(rig.push(at, static_cast<float>(10 * at)));
  }
  HeldPage page;
  double at = 5;
  rbcStatus_t pushed = RBC_STATUS_INTERNAL;
  std::thread producer([&] { pushed = rig.pushFrom(&at, page.get()); });
  page.awaitThread();
  rig.query = 3.5;
  for (int i = 0; i < 3; ++i) {  // 1.5, 2, 3, 4
    rig.out = -1;
    CHECK_SUCCEEDS(rig.fuseTo(&rig.out));
    CHECK(rig.out == 35);
    CHECK(rig.age == 0.5);
    CHECK(countersOf(rig.live, 0).kept == 6);
  }
  CHECK(countersOf(rig.live, 0).snapshot_retries == 0);
  page.letGo();
  producer.join();
  CHECK(pushed == RBC_STATUS_SUCCESS);
  CHECK(countersOf(rig.live, 0).kept == 7);
  rig.query = 4.5;
  CHECK_SUCCEEDS(rig.fuseTo(&rig.out));
  CHECK(rig.out == 20);
}

TEST_CASE("live: a consumer held in the middle of a tick") {
  Rig rig;
  CHECK_SUCCEEDS(rig.push(1, 10));
  CHECK_SUCCEEDS(rig.push(2, 20));
  HeldPage page;
  rbcStatus_t fused = RBC_STATUS_INTERNAL;
  std::thread consumer([&] { fused = rig.fuseTo(page.get()); });
  page.awaitThread();

  for (int i = 0; i < 20; ++i) CHECK_SUCCEEDS(rig.push(3 + i, 30));  // five times the ring
  CHECK(countersOf(rig.live, 0).kept == 22);
  CHECK(countersOf(rig.live, 0).overwritten == 18);
  CHECK_SUCCEEDS(rbcLiveReset(rig.live.get(), 0));
  CHECK(countersOf(rig.live, 0).forgotten == 4);
  CHECK_FAILS(rig.fuseTo(&rig.out), RBC_STATUS_UNSUPPORTED, "live", "another thread is fusing");
  CHECK_FAILS(rbcLiveDestroy(rig.live.get()), RBC_STATUS_UNSUPPORTED, "live", "a thread is fusing");

  page.letGo();
  consumer.join();
  CHECK(fused == RBC_STATUS_SUCCESS);
  CHECK(*static_cast<float*>(page.get()) == 15);  // the sample from when the call began
}
