// Every span of a run as an Arrow file (the IPC file format of Apache Arrow, version 5 of its metadata; also called
// Feather 2), which pandas, polars, DuckDB and R read without parsing. Columns are those of the table of spans; what is
// not known is null; lane and kind are dictionaries. Spans come in batches, so that memory is bounded.
// Layout: https://arrow.apache.org/docs/format/Columnar.html, "IPC File Format". Metadata are FlatBuffers tables, which
// are built here by the numbers of their fields (Schema.fbs, Message.fbs, File.fbs).
#include <array>
#include <cstring>

#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include "traces/export/span_row.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"
#include "traces/run/run_facts.h"

namespace stagewright::formats {

namespace {

namespace fb = flatbuffers;

constexpr std::size_t batchRows = 1 << 16;
constexpr std::int16_t metadataVersion = 4; // V5

enum class Type : std::uint8_t { Int = 2, Utf8 = 5 };
enum class Header : std::uint8_t { Schema = 1, DictionaryBatch = 2, RecordBatch = 3 };

constexpr fb::voffset_t field(int number) { return static_cast<fb::voffset_t>(4 + 2 * number); }

struct Block { // a place in the file, as the footer has it
    std::int64_t offset;
    std::int32_t metadataLength;
    std::int32_t padding;
    std::int64_t bodyLength;
};
struct Place { // of a buffer in a body; of a column: rows, and those without a value
    std::int64_t first;
    std::int64_t second;
};

struct ColumnType {
    Type type = Type::Int;
    int bits = 0;        // of an integer
    int dictionary = -1; // its number; the column then holds indices of `bits`
};
constexpr std::array<ColumnType, std::size(spanColumns)> columnTypes{{{Type::Int, 32},
                                                                      {Type::Int, 32},
                                                                      {Type::Utf8, 8, 0},
                                                                      {Type::Int, 32},
                                                                      {Type::Utf8, 8, 1},
                                                                      {Type::Int, 32},
                                                                      {Type::Int, 64},
                                                                      {Type::Int, 64},
                                                                      {Type::Int, 64},
                                                                      {Type::Utf8},
                                                                      {Type::Int, 64},
                                                                      {Type::Int, 64},
                                                                      {Type::Int, 64}}};

fb::Offset<void> intType(fb::FlatBufferBuilder& to, int bits)
{
    const auto start = to.StartTable();
    to.AddElement<std::int32_t>(field(0), bits, 0);
    to.AddElement<std::uint8_t>(field(1), 1, 0); // signed
    return to.EndTable(start);
}

fb::Offset<void> schemaOf(fb::FlatBufferBuilder& to, const TextPairs& facts)
{
    std::vector<fb::Offset<void>> fields;
    for (std::size_t i = 0; i < std::size(spanColumns); ++i) {
        const ColumnType& column = columnTypes[i];
        const auto name = to.CreateString(spanColumns[i].data(), spanColumns[i].size());
        fb::Offset<void> type;
        if (column.type == Type::Int)
            type = intType(to, column.bits);
        else
            type = to.EndTable(to.StartTable());
        fb::Offset<void> dictionary;
        if (column.dictionary >= 0) {
            const auto index = intType(to, column.bits);
            const auto start = to.StartTable();
            to.AddElement<std::int64_t>(field(0), column.dictionary, -1);
            to.AddOffset(field(1), index);
            dictionary = to.EndTable(start);
        }
        const auto children = to.CreateVector(std::vector<fb::Offset<void>>());
        const auto start = to.StartTable();
        to.AddOffset(field(0), name);
        to.AddElement<std::uint8_t>(field(1), 1, 0); // may be null
        to.AddElement<std::uint8_t>(field(2), static_cast<std::uint8_t>(column.type), 0);
        to.AddOffset(field(3), type);
        if (column.dictionary >= 0) to.AddOffset(field(4), dictionary);
        to.AddOffset(field(5), children);
        fields.push_back(to.EndTable(start));
    }
    std::vector<fb::Offset<void>> pairs;
    for (const auto& [key, value] : facts) {
        const auto k = to.CreateString(key);
        const auto v = to.CreateString(value);
        const auto start = to.StartTable();
        to.AddOffset(field(0), k);
        to.AddOffset(field(1), v);
        pairs.push_back(to.EndTable(start));
    }
    const auto list = to.CreateVector(fields);
    const auto metadata = to.CreateVector(pairs);
    const auto start = to.StartTable();
    to.AddElement<std::int16_t>(field(0), 0, -1); // little-endian
    to.AddOffset(field(1), list);
    to.AddOffset(field(2), metadata);
    return to.EndTable(start);
}

// Columns of one batch, as its body has them: each buffer padded to 8 bytes.
class Body {
public:
    template <typename Number>
    void add(const std::vector<std::optional<Number>>& values)
    {
        const std::int64_t nulls = std::count(values.begin(), values.end(), std::nullopt);
        validity(values, nulls);
        std::vector<Number> plain(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) plain[i] = values[i].value_or(0);
        buffer(plain.data(), plain.size() * sizeof(Number));
        m_columns.push_back({static_cast<std::int64_t>(values.size()), nulls});
    }
    void add(const std::vector<std::string>& values)
    {
        buffer(nullptr, 0); // all are there
        std::vector<std::int32_t> ends{0};
        std::string text;
        for (const std::string& value : values) {
            text += value;
            ends.push_back(static_cast<std::int32_t>(text.size()));
        }
        buffer(ends.data(), ends.size() * sizeof(std::int32_t));
        buffer(text.data(), text.size());
        m_columns.push_back({static_cast<std::int64_t>(values.size()), 0});
    }
    const std::string& bytes() const { return m_bytes; }
    // a RecordBatch table
    fb::Offset<void> header(fb::FlatBufferBuilder& to, std::int64_t rows) const
    {
        const auto columns = places(to, m_columns);
        const auto buffers = places(to, m_buffers);
        const auto start = to.StartTable();
        to.AddElement<std::int64_t>(field(0), rows, 0);
        to.AddOffset(field(1), columns);
        to.AddOffset(field(2), buffers);
        return to.EndTable(start);
    }

private:
    static fb::Offset<void> places(fb::FlatBufferBuilder& to, const std::vector<Place>& all)
    {
        to.StartVector(all.size() * sizeof(Place) / 8, 8);
        for (auto it = all.rbegin(); it != all.rend(); ++it) {
            to.PushElement(it->second);
            to.PushElement(it->first);
        }
        return to.EndVector(all.size());
    }
    template <typename Number>
    void validity(const std::vector<std::optional<Number>>& values, std::int64_t nulls)
    {
        if (nulls == 0) return buffer(nullptr, 0);
        std::string bits((values.size() + 7) / 8, '\0');
        for (std::size_t i = 0; i < values.size(); ++i)
            if (values[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | (1 << (i % 8)));
        buffer(bits.data(), bits.size());
    }
    void buffer(const void* data, std::size_t size)
    {
        m_buffers.push_back({static_cast<std::int64_t>(m_bytes.size()), static_cast<std::int64_t>(size)});
        if (size > 0) m_bytes.append(static_cast<const char*>(data), size);
        m_bytes.resize((m_bytes.size() + 7) / 8 * 8, '\0');
    }

    std::string m_bytes;
    std::vector<Place> m_columns;
    std::vector<Place> m_buffers;
};

class ArrowFile {
public:
    ArrowFile(const Sink& out, TextPairs facts) : m_out(out), m_facts(std::move(facts)) {}

    bool begin()
    {
        if (!put(std::string_view("ARROW1\0\0", 8))) return false;
        fb::FlatBufferBuilder builder;
        const auto schema = schemaOf(builder, m_facts);
        return message(builder, Header::Schema, schema, {}, nullptr);
    }
    bool dictionary(std::int64_t number, const std::vector<std::string>& values)
    {
        Body body;
        body.add(values);
        fb::FlatBufferBuilder builder;
        const auto data = body.header(builder, static_cast<std::int64_t>(values.size()));
        const auto start = builder.StartTable();
        builder.AddElement<std::int64_t>(field(0), number, -1);
        builder.AddOffset(field(1), data);
        return message(builder, Header::DictionaryBatch, builder.EndTable(start), body.bytes(), &m_dictionaries);
    }
    bool batch(const Body& body, std::int64_t rows)
    {
        fb::FlatBufferBuilder builder;
        const auto header = body.header(builder, rows);
        return message(builder, Header::RecordBatch, header, body.bytes(), &m_batches);
    }
    bool end()
    {
        if (!put(std::string_view("\xff\xff\xff\xff\0\0\0\0", 8))) return false; // no more messages
        fb::FlatBufferBuilder builder;
        const auto schema = schemaOf(builder, m_facts);
        const auto dictionaries = blocks(builder, m_dictionaries);
        const auto batches = blocks(builder, m_batches);
        const auto start = builder.StartTable();
        builder.AddElement<std::int16_t>(field(0), metadataVersion, 0);
        builder.AddOffset(field(1), schema);
        builder.AddOffset(field(2), dictionaries);
        builder.AddOffset(field(3), batches);
        builder.Finish(fb::Offset<fb::Table>(builder.EndTable(start)));
        const auto size = static_cast<std::int32_t>(builder.GetSize());
        return put({reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()}) &&
               put({reinterpret_cast<const char*>(&size), sizeof size}) && put("ARROW1");
    }

private:
    static fb::Offset<void> blocks(fb::FlatBufferBuilder& to, const std::vector<Block>& all)
    {
        to.StartVector(all.size() * sizeof(Block) / 8, 8);
        for (auto it = all.rbegin(); it != all.rend(); ++it) {
            to.PushElement(it->bodyLength);
            to.PushElement(it->padding);
            to.PushElement(it->metadataLength);
            to.PushElement(it->offset);
        }
        return to.EndVector(all.size());
    }
    bool put(std::string_view bytes)
    {
        m_written += static_cast<std::int64_t>(bytes.size());
        return m_out(bytes);
    }
    bool message(fb::FlatBufferBuilder& builder, Header kind, fb::Offset<void> header, const std::string& body,
                 std::vector<Block>* listed)
    {
        const auto start = builder.StartTable();
        builder.AddElement<std::int64_t>(field(3), static_cast<std::int64_t>(body.size()), 0);
        builder.AddOffset(field(2), header);
        builder.AddElement<std::int16_t>(field(0), metadataVersion, 0);
        builder.AddElement<std::uint8_t>(field(1), static_cast<std::uint8_t>(kind), 0);
        builder.Finish(fb::Offset<fb::Table>(builder.EndTable(start)));
        const std::size_t size = (builder.GetSize() + 7) / 8 * 8; // bodies start at multiples of 8
        const std::array<std::int32_t, 2> prefix{-1, static_cast<std::int32_t>(size)};
        const std::int64_t at = m_written;
        std::string bytes(reinterpret_cast<const char*>(prefix.data()), sizeof prefix);
        bytes.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
        bytes.resize(sizeof prefix + size, '\0');
        if (listed != nullptr)
            listed->push_back({at, static_cast<std::int32_t>(bytes.size()), 0, static_cast<std::int64_t>(body.size())});
        return put(bytes) && put(body);
    }

    const Sink& m_out;
    TextPairs m_facts;
    std::int64_t m_written = 0;
    std::vector<Block> m_dictionaries, m_batches;
};

// Rows of a batch, by column.
struct Rows {
    std::vector<std::optional<std::int32_t>> step, rank, stage, microbatch;
    std::vector<std::optional<std::int8_t>> lane, kind;
    std::vector<std::optional<std::int64_t>> start, end, cpu, number, graph, node;
    std::vector<std::string> name;

    void add(SpanRow row, std::int8_t laneIndex)
    {
        step.push_back(row.step);
        rank.push_back(row.rank);
        lane.push_back(laneIndex);
        stage.push_back(row.stage);
        kind.push_back(row.kind ? std::optional(static_cast<std::int8_t>(*row.kind)) : std::nullopt);
        microbatch.push_back(row.microbatch);
        start.push_back(row.start);
        end.push_back(row.end);
        cpu.push_back(row.cpu);
        name.push_back(std::move(row.name));
        number.push_back(row.stepNumber);
        graph.push_back(row.graph.graph);
        node.push_back(row.graph.node);
    }
    Body body() const // in the order of spanColumns
    {
        Body out;
        out.add(step);
        out.add(rank);
        out.add(lane);
        out.add(stage);
        out.add(kind);
        out.add(microbatch);
        out.add(start);
        out.add(end);
        out.add(cpu);
        out.add(name);
        out.add(number);
        out.add(graph);
        out.add(node);
        return out;
    }
};

Result<WrittenFile> writeArrow(const ExportRequest& request)
{
    const Run& run = *request.run;
    const Timeline& timeline = *run.timeline;
    TextPairs facts{{"name", run.info.name}};
    for (const RunFact& fact : factsOf(run))
        if (!fact.value.empty()) facts.emplace_back(fact.key, fact.value);
    std::vector<std::string> lanes, kinds;
    std::vector<std::int8_t> laneOf;
    for (const Track& track : timeline.tracks()) {
        const std::string text(toText(track.lane));
        const auto known = std::find(lanes.begin(), lanes.end(), text);
        laneOf.push_back(static_cast<std::int8_t>(known - lanes.begin()));
        if (known == lanes.end()) lanes.push_back(text);
    }
    for (const KindTraits& kind : allKinds()) kinds.emplace_back(kind.text);
    std::int64_t count = 0;
    STAGEWRIGHT_CHECK(writeFileAtomically(request.path, [&](const Sink& out) -> Result<void> {
        ArrowFile file(out, facts);
        bool good = file.begin() && file.dictionary(0, lanes) && file.dictionary(1, kinds);
        Rows rows;
        const auto flush = [&] {
            good = good && (rows.name.empty() || file.batch(rows.body(), std::ssize(rows.name)));
            rows = {};
        };
        std::size_t number = 0;
        for (const Track& track : timeline.tracks()) {
            const std::int8_t lane = laneOf[number++];
            for (SpanId id = track.begin; id < track.end && good; ++id, ++count) {
                rows.add(spanRow(timeline, track, id), lane);
                if (rows.name.size() < batchRows) continue;
                request.progress.tell("writing spans", count, static_cast<std::int64_t>(timeline.spans().size()));
                if (request.progress.cancelled()) return fail(ErrorCode::Cancelled, "writing was cancelled");
                flush();
            }
        }
        flush();
        if (good) (void)file.end(); // else the file says why
        return {};
    }));
    return WrittenFile{{{"spans", count}}, fmt::format("{} spans", count)};
}

} // namespace

extern const FormatInfo arrow;
const FormatInfo arrow{.name = "arrow",
                       .title = "Arrow table",
                       .writes = "a table of every span for pandas, polars or DuckDB",
                       .suffixes = {".arrow", ".feather"},
                       .write = writeArrow};

} // namespace stagewright::formats
