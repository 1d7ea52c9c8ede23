#include "tests/support/emulated_flash.h"

namespace stagewright::fake {

using namespace cuda;

namespace {

// `tile(thread, sample, head, number)` for every block of the grid.
template <typename Tile>
void launch(const StagewrightFlash& f, std::vector<KernelRange> ranges, int rows, std::uint32_t bytes,
            const FlashWatch& watch, Tile&& tile)
{
    EmulatedKernel kernel(std::move(ranges));
    if (watch.before) watch.before(kernel);
    for (int sample = 0; sample < f.batch; ++sample) {
        for (int head = 0; head < f.heads; ++head) {
            for (int number = 0; number < flashBlocks(f.tokens, rows); ++number) {
                kernel.run(tileThreads, bytes, [&](const EmulatedThread& t) { tile(t, sample, head, number); });
                if (watch.after) watch.after(kernel);
            }
        }
    }
}

struct Sizes // bytes of strided, dense and per-row tensors
{
    std::size_t strided, dense, rows;
    explicit Sizes(const StagewrightFlash& f)
    {
        const auto tokens = static_cast<std::size_t>(f.batch) * static_cast<std::size_t>(f.tokens);
        const auto columns = static_cast<std::size_t>(f.heads) * static_cast<std::size_t>(f.width);
        strided = ((tokens - 1) * static_cast<std::size_t>(f.stride) + columns) * 2;
        dense = tokens * columns * 2;
        rows = tokens * static_cast<std::size_t>(f.heads) * sizeof(float);
    }
};

} // namespace

void emulateFlash(const StagewrightFlash& f, const FlashWatch& watch, FlashBy by)
{
    const Sizes s(f);
    withTileWidth(f, [&](auto width) {
        constexpr int w = decltype(width)::value;
        const std::vector<KernelRange> ranges = {{f.query, s.strided, false},
                                                 {f.key, s.strided, false},
                                                 {f.value, s.strided, false},
                                                 {f.out, s.dense, true},
                                                 {f.sums, s.rows, true}};
        if (by == FlashBy::Groups)
            launch(f, ranges, groupRows, GroupShape<w>::forwardBytes, watch,
                   [&](const EmulatedThread& t, int sample, int head, int tile) {
                       flashForwardGroup<w>(GroupOfWarps(t), f, sample, head, tile);
                   });
        else
            launch(f, ranges, flashRows<w>, flashForwardBytes<w>, watch,
                   [&](const EmulatedThread& t, int sample, int head, int tile) {
                       flashForwardTile<w>(t, f, sample, head, tile);
                   });
    });
}

void emulateFlashBackward(const StagewrightFlash& f, const FlashWatch& watch, FlashBy by)
{
    for (int sample = 0; sample < f.batch; ++sample)
        for (int head = 0; head < f.heads; ++head)
            for (int r = 0; r < f.tokens; ++r) flashInnerRow<Bf16>(OneLane{}, f, sample, head, r);
    const Sizes s(f);
    const std::vector<KernelRange> read = {{f.query, s.strided, false}, {f.key, s.strided, false},
                                           {f.value, s.strided, false}, {f.outGrad, s.dense, false},
                                           {f.sums, s.rows, false},     {f.inner, s.rows, false}};
    withTileWidth(f, [&](auto width) {
        constexpr int w = decltype(width)::value;
        std::vector<KernelRange> ranges = read;
        ranges.push_back({f.queryGrad, s.strided, true});
        if (by == FlashBy::Groups)
            launch(f, std::move(ranges), groupRows, GroupShape<w>::queryBytes, watch,
                   [&](const EmulatedThread& t, int sample, int head, int tile) {
                       flashQueryGroup<w>(GroupOfWarps(t), f, sample, head, tile);
                   });
        else
            launch(f, std::move(ranges), flashRows<w>, flashQueryBytes<w>, watch,
                   [&](const EmulatedThread& t, int sample, int head, int tile) {
                       flashQueryTile<w>(t, f, sample, head, tile);
                   });
        ranges = read;
        ranges.push_back({f.keyGrad, s.strided, true});
        ranges.push_back({f.valueGrad, s.strided, true});
        if (by == FlashBy::Groups)
            launch(f, std::move(ranges), groupRows, GroupShape<w>::keyBytes, watch,
                   [&](const EmulatedThread& t, int sample, int head, int tile) {
                       flashKeyGroup<w>(GroupOfWarps(t), f, sample, head, tile);
                   });
        else
            launch(f, std::move(ranges), flashRows<w>, flashKeyBytes<w>, watch,
                   [&](const EmulatedThread& t, int sample, int head, int tile) {
                       flashKeyTile<w>(t, f, sample, head, tile);
                   });
    });
}

} // namespace stagewright::fake
