#include "tests/support/fibers.h"

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedules/base/sanitizers.h"

#ifdef STAGEWRIGHT_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef STAGEWRIGHT_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace stagewright::fake {

namespace {

constexpr std::size_t stackBytes = std::size_t{256} << 10;

// In its own frame: whoever sees getcontext() must think that it may come back. makecontext() then says where it goes
// instead.
[[gnu::noinline]] void fill(ucontext_t& context) { getcontext(&context); }

struct Place {
    ucontext_t context{};
    const void* bottom = nullptr; // of its stack
    std::size_t bytes = 0;
    void* fake = nullptr;   // address sanitizer's
    void* thread = nullptr; // thread sanitizer's
};

} // namespace

struct Fibers::Impl {
    void (*body)(void*, int) = nullptr;
    void* context = nullptr;
    std::vector<Place> places; // of the fibers; then the caller's
    std::vector<std::unique_ptr<std::byte[]>> stacks;

    Place& caller() { return places.back(); }

    void go(Place& from, Place& to)
    {
#ifdef STAGEWRIGHT_ADDRESS_SANITIZER
        __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.bytes);
#endif
#ifdef STAGEWRIGHT_THREAD_SANITIZER
        __tsan_switch_to_fiber(to.thread, 0);
#endif
        swapcontext(&from.context, &to.context);
        arrived(from);
    }
    void arrived([[maybe_unused]] Place& place)
    {
#ifdef STAGEWRIGHT_ADDRESS_SANITIZER
        const void* bottom = nullptr;
        std::size_t bytes = 0;
        __sanitizer_finish_switch_fiber(place.fake, &bottom, &bytes);
        if (caller().bottom == nullptr) { // the first switch was the caller's
            caller().bottom = bottom;
            caller().bytes = bytes;
        }
#endif
    }

    static void begin(unsigned high, unsigned low, int fiber)
    {
        auto* impl = reinterpret_cast<Impl*>(static_cast<std::uintptr_t>(high) << 32 | low);
        impl->arrived(impl->places[static_cast<std::size_t>(fiber)]);
        for (;;) impl->body(impl->context, fiber);
    }
};

Fibers::Fibers(int count) : m_impl(std::make_unique<Impl>())
{
    m_impl->places.resize(static_cast<std::size_t>(count) + 1);
    for (int i = 0; i < count; ++i) {
        m_impl->stacks.push_back(std::make_unique_for_overwrite<std::byte[]>(stackBytes));
        Place& place = m_impl->places[static_cast<std::size_t>(i)];
        place.bottom = m_impl->stacks.back().get();
        place.bytes = stackBytes;
#ifdef STAGEWRIGHT_THREAD_SANITIZER
        place.thread = __tsan_create_fiber(0);
#endif
        fill(place.context);
        place.context.uc_stack.ss_sp = m_impl->stacks.back().get();
        place.context.uc_stack.ss_size = stackBytes;
        const auto self = reinterpret_cast<std::uintptr_t>(m_impl.get());
        makecontext(&place.context, reinterpret_cast<void (*)()>(&Impl::begin), 3, static_cast<unsigned>(self >> 32),
                    static_cast<unsigned>(self & 0xffffffffU), i);
    }
}

Fibers::~Fibers()
{
#ifdef STAGEWRIGHT_THREAD_SANITIZER
    for (std::size_t i = 0; i + 1 < m_impl->places.size(); ++i) __tsan_destroy_fiber(m_impl->places[i].thread);
#endif
}

void Fibers::run(int first, void (*body)(void*, int), void* context)
{
    m_impl->body = body;
    m_impl->context = context;
#ifdef STAGEWRIGHT_THREAD_SANITIZER
    m_impl->caller().thread = __tsan_get_current_fiber();
#endif
    m_impl->go(m_impl->caller(), m_impl->places[static_cast<std::size_t>(first)]);
}

void Fibers::to(int from, int fiber)
{
    m_impl->go(m_impl->places[static_cast<std::size_t>(from)], m_impl->places[static_cast<std::size_t>(fiber)]);
}

void Fibers::leave(int from) { m_impl->go(m_impl->places[static_cast<std::size_t>(from)], m_impl->caller()); }

} // namespace stagewright::fake
