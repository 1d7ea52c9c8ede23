#include "traces/store/blocks.h"

#include <array>
#include <bit>
#include <limits>

#include "schedules/base/time_limits.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

using Column = std::array<std::int64_t, blockRows>;

template <typename T>
bool fits(std::int64_t value)
{
    return value >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
           value <= static_cast<std::int64_t>(std::numeric_limits<T>::max());
}

template <typename Row, typename Get>
void addColumn(BlockEncoder& encoder, std::span<const Row> rows, ColumnForm form, Get get)
{
    Column column; // filled only as far as it is read
    for (std::size_t i = 0; i < rows.size(); ++i) column[i] = static_cast<std::int64_t>(get(rows[i]));
    encoder.add(std::span<const std::int64_t>(column.data(), rows.size()), form);
}

constexpr std::size_t spanColumns = 12;
constexpr std::size_t memoryColumns = 6;
constexpr std::size_t edgeColumns = 4;
constexpr std::size_t sampleColumns = 2;

} // namespace

std::span<const std::byte> encodeSpans(BlockEncoder& encoder, std::span<const Span> spans, std::span<const Nanos> cpu)
{
    encoder.clear();
    const auto add = [&](ColumnForm form, auto get) { addColumn(encoder, spans, form, get); };
    add(ColumnForm::Delta, [](const Span& s) { return s.start; });
    add(ColumnForm::Plain, [](const Span& s) { return s.end - s.start; });
    if (cpu.empty()) {
        add(ColumnForm::Plain, [](const Span&) { return -1; }); // unknown
    } else {
        encoder.add(cpu, ColumnForm::Plain);
    }
    add(ColumnForm::Plain, [](const Span& s) { return static_cast<int>(s.op.kind); });
    add(ColumnForm::Plain, [](const Span& s) { return s.op.stage; });
    add(ColumnForm::Delta, [](const Span& s) { return s.op.microbatch; });
    add(ColumnForm::Plain, [](const Span& s) { return s.op.count; });
    add(ColumnForm::Plain, [](const Span& s) { return s.op.slice; });
    add(ColumnForm::Plain, [](const Span& s) { return s.op.half; });
    add(ColumnForm::Plain, [](const Span& s) { return s.op.delay; });
    add(ColumnForm::Plain, [](const Span& s) { return s.label; });
    add(ColumnForm::Plain, [](const Span& s) { return s.flags; });
    return encoder.finish();
}

bool decodeSpans(std::span<const std::byte> bytes, std::size_t rows, int step, std::vector<StoredSpan>& out)
{
    const auto block = BlockDecoder::open(bytes, rows, spanColumns);
    if (!block) return false;
    const auto start = block->column(0);
    const auto duration = block->column(1);
    const auto cpu = block->column(2);
    const auto kind = block->column(3);
    const auto stage = block->column(4);
    const auto microbatch = block->column(5);
    const auto count = block->column(6);
    const auto slice = block->column(7);
    const auto half = block->column(8);
    const auto delay = block->column(9);
    const auto label = block->column(10);
    const auto flags = block->column(11);
    out.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        const bool ok = isStorableTime(start[i]) && duration[i] >= 0 && isStorableTime(duration[i]) && kind[i] >= 0 &&
                        kind[i] < static_cast<std::int64_t>(allKinds().size()) && fits<std::uint16_t>(stage[i]) &&
                        fits<std::int32_t>(microbatch[i]) && fits<std::uint16_t>(count[i]) &&
                        fits<std::int16_t>(slice[i]) && fits<std::uint8_t>(half[i]) && fits<std::uint32_t>(delay[i]) &&
                        label[i] >= 0 && label[i] < (1 << 24) && fits<std::uint8_t>(flags[i]);
        if (!ok) return false;
        Span& span = out[i].span;
        span.start = start[i];
        span.end = start[i] + duration[i];
        span.op.kind = static_cast<OpKind>(kind[i]);
        span.op.stage = static_cast<std::uint16_t>(stage[i]);
        span.op.microbatch = static_cast<std::int32_t>(microbatch[i]);
        span.op.count = static_cast<std::uint16_t>(count[i]);
        span.op.slice = static_cast<std::int16_t>(slice[i]);
        span.op.half = static_cast<std::uint8_t>(half[i]);
        span.op.delay = static_cast<std::uint32_t>(delay[i]);
        span.step = step;
        span.label = static_cast<std::uint32_t>(label[i]) & 0xffffffu;
        span.flags = static_cast<std::uint8_t>(flags[i]);
        out[i].cpu = cpu[i];
    }
    return true;
}

std::span<const std::byte> encodeMemory(BlockEncoder& encoder, std::span<const MemoryEvent> events)
{
    encoder.clear();
    const auto add = [&](ColumnForm form, auto get) { addColumn(encoder, events, form, get); };
    add(ColumnForm::Delta, [](const MemoryEvent& e) { return e.time; });
    add(ColumnForm::Plain, [](const MemoryEvent& e) { return e.delta; });
    add(ColumnForm::Plain, [](const MemoryEvent& e) { return e.microbatch; });
    add(ColumnForm::Delta, [](const MemoryEvent& e) { return e.step; });
    add(ColumnForm::Plain, [](const MemoryEvent& e) { return e.stage; });
    add(ColumnForm::Plain, [](const MemoryEvent& e) { return static_cast<int>(e.category); });
    return encoder.finish();
}

bool decodeMemory(std::span<const std::byte> bytes, std::size_t rows, int rank, std::vector<MemoryEvent>& out)
{
    const auto block = BlockDecoder::open(bytes, rows, memoryColumns);
    if (!block) return false;
    const auto time = block->column(0);
    const auto delta = block->column(1);
    const auto microbatch = block->column(2);
    const auto step = block->column(3);
    const auto stage = block->column(4);
    const auto category = block->column(5);
    out.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        const bool ok = isStorableTime(time[i]) && fits<std::int32_t>(microbatch[i]) && step[i] >= 0 &&
                        fits<std::int32_t>(step[i]) && fits<std::uint16_t>(stage[i]) && category[i] >= 0 &&
                        category[i] < static_cast<std::int64_t>(memoryCategoryCount);
        if (!ok) return false;
        MemoryEvent& event = out[i];
        event.time = time[i];
        event.delta = delta[i];
        event.microbatch = static_cast<std::int32_t>(microbatch[i]);
        event.step = static_cast<std::int32_t>(step[i]);
        event.rank = static_cast<std::uint16_t>(rank);
        event.stage = static_cast<std::uint16_t>(stage[i]);
        event.category = static_cast<MemoryCategory>(category[i]);
    }
    return true;
}

std::span<const std::byte> encodeMemoryBase(BlockEncoder& encoder, std::span<const MemoryEvent> events)
{
    encoder.clear();
    const auto add = [&](ColumnForm form, auto get) { addColumn(encoder, events, form, get); };
    add(ColumnForm::Delta, [](const MemoryEvent& e) { return e.rank; });
    add(ColumnForm::Delta, [](const MemoryEvent& e) { return e.time; });
    add(ColumnForm::Plain, [](const MemoryEvent& e) { return e.delta; });
    add(ColumnForm::Delta, [](const MemoryEvent& e) { return e.step; });
    add(ColumnForm::Plain, [](const MemoryEvent& e) { return e.stage; });
    add(ColumnForm::Plain, [](const MemoryEvent& e) { return static_cast<int>(e.category); });
    return encoder.finish();
}

bool decodeMemoryBase(std::span<const std::byte> bytes, std::size_t rows, std::vector<MemoryEvent>& out)
{
    const auto block = BlockDecoder::open(bytes, rows, memoryColumns);
    if (!block) return false;
    const auto rank = block->column(0);
    const auto time = block->column(1);
    const auto bytesInUse = block->column(2);
    const auto step = block->column(3);
    const auto stage = block->column(4);
    const auto category = block->column(5);
    out.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        const bool ok = fits<std::uint16_t>(rank[i]) && isStorableTime(time[i]) && step[i] >= 0 &&
                        fits<std::int32_t>(step[i]) && fits<std::uint16_t>(stage[i]) && category[i] >= 0 &&
                        category[i] < static_cast<std::int64_t>(memoryCategoryCount);
        if (!ok) return false;
        out[i] = MemoryEvent{time[i],
                             bytesInUse[i],
                             -1,
                             static_cast<std::int32_t>(step[i]),
                             static_cast<std::uint16_t>(rank[i]),
                             static_cast<std::uint16_t>(stage[i]),
                             static_cast<MemoryCategory>(category[i])};
    }
    return true;
}

std::span<const std::byte> encodeEdges(BlockEncoder& encoder, std::span<const Edge> edges)
{
    encoder.clear();
    const auto add = [&](ColumnForm form, auto get) { addColumn(encoder, edges, form, get); };
    add(ColumnForm::Delta, [](const Edge& e) { return e.from; });
    add(ColumnForm::Delta, [](const Edge& e) { return e.to; });
    add(ColumnForm::Plain, [](const Edge& e) { return static_cast<int>(e.kind); });
    add(ColumnForm::Delta, [](const Edge& e) { return e.arrival; });
    return encoder.finish();
}

bool decodeEdges(std::span<const std::byte> bytes, std::size_t rows, std::vector<Edge>& out)
{
    const auto block = BlockDecoder::open(bytes, rows, edgeColumns);
    if (!block) return false;
    const auto from = block->column(0);
    const auto to = block->column(1);
    const auto kind = block->column(2);
    const auto arrival = block->column(3);
    out.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        const bool ok = fits<SpanId>(from[i]) && to[i] >= 0 && to[i] < static_cast<std::int64_t>(mostSpans) &&
                        kind[i] >= 0 && kind[i] <= static_cast<std::int64_t>(EdgeKind::Launch) &&
                        isStorableTime(arrival[i]);
        if (!ok) return false;
        out[i].from = static_cast<SpanId>(from[i]);
        out[i].to = static_cast<SpanId>(to[i]) & mostSpans;
        out[i].kind = static_cast<EdgeKind>(kind[i]);
        out[i].arrival = arrival[i];
    }
    return true;
}

SpanId firstEdgeTarget(std::span<const std::byte> bytes, std::size_t rows)
{
    const auto to = BlockDecoder::firstOf(bytes, rows, 1);
    return to && *to >= 0 && *to < static_cast<std::int64_t>(mostSpans) ? static_cast<SpanId>(*to) : noSpan;
}

std::span<const std::byte> encodeSamples(BlockEncoder& encoder, std::span<const CounterSample> samples)
{
    encoder.clear();
    const auto add = [&](ColumnForm form, auto get) { addColumn(encoder, samples, form, get); };
    add(ColumnForm::Delta, [](const CounterSample& s) { return s.time; });
    add(ColumnForm::Plain, [](const CounterSample& s) { return std::bit_cast<std::int64_t>(s.value); });
    return encoder.finish();
}

bool decodeSamples(std::span<const std::byte> bytes, std::size_t rows, std::vector<CounterSample>& out)
{
    const auto block = BlockDecoder::open(bytes, rows, sampleColumns);
    if (!block) return false;
    const auto time = block->column(0);
    const auto value = block->column(1);
    out.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        if (!isStorableTime(time[i])) return false;
        out[i] = {time[i], std::bit_cast<double>(value[i])};
    }
    return true;
}

} // namespace stagewright
