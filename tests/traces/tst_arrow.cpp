// The Arrow file of a run, read back from its footer as Arrow's page on columns says, holds the rows of the table of spans.
#include <QtTest/QtTest>

#include <cstring>
#include <fstream>
#include <sstream>

#include <flatbuffers/flatbuffers.h>

#include "schedules/base/csv_line.h"
#include "traces/export/span_row.h"
#include "traces/format/format_registry.h"

using namespace stagewright;
namespace fb = flatbuffers;

namespace {

constexpr fb::voffset_t field(int number) { return static_cast<fb::voffset_t>(4 + 2 * number); }

struct Block { // of the footer
    std::int64_t offset;
    std::int32_t metadata;
    std::int32_t padding;
    std::int64_t body;
};
struct Place {
    std::int64_t first, second;
};

// A reader of its own: it has places and numbers of fields from the format's page.
class ArrowReader {
public:
    explicit ArrowReader(std::string bytes) : m_bytes(std::move(bytes))
    {
        std::int32_t length = 0;
        std::memcpy(&length, m_bytes.data() + m_bytes.size() - 10, 4);
        m_footer.assign(m_bytes.data() + m_bytes.size() - 10 - length, static_cast<std::size_t>(length));
        footer = fb::GetRoot<fb::Table>(m_footer.data());
        fields = footer->GetPointer<const fb::Table*>(field(1))->GetPointer<Tables>(field(1));
        for (const Block& one : blocks(2)) { // dictionaries
            const fb::Table* header = headerOf(one, 2);
            const auto number = header->GetField<std::int64_t>(field(0), 0);
            dictionaries.resize(std::max(dictionaries.size(), static_cast<std::size_t>(number) + 1));
            std::size_t buffer = 0;
            texts(header->GetPointer<const fb::Table*>(field(1)), one, buffer,
                  dictionaries[static_cast<std::size_t>(number)]);
        }
        for (const Block& one : blocks(3)) read(one);
    }

    using Tables = const fb::Vector<fb::Offset<fb::Table>>*;
    const fb::Table* footer = nullptr;
    Tables fields = nullptr;
    std::vector<std::vector<std::string>> dictionaries;
    std::vector<std::vector<std::string>> rows; // as CSV cells
    std::size_t batches = 0;

    std::vector<Block> blocks(int number) const
    {
        const auto* list = footer->GetPointer<const fb::Vector<std::uint8_t>*>(field(number));
        std::vector<Block> out(list->size());
        if (!out.empty()) std::memcpy(static_cast<void*>(out.data()), list->Data(), out.size() * sizeof(Block));
        return out;
    }

private:
    const fb::Table* headerOf(const Block& block, int kind)
    {
        const char* at = m_bytes.data() + block.offset;
        std::int32_t mark = 0;
        std::memcpy(&mark, at, 4);
        if (mark != -1 || block.offset % 8 != 0 || block.metadata % 8 != 0) return nullptr;
        m_messages.push_back(std::make_unique<std::string>(at + 8, static_cast<std::size_t>(block.metadata) - 8));
        const auto* message = fb::GetRoot<fb::Table>(m_messages.back()->data());
        if (message->GetField<std::uint8_t>(field(1), 0) != kind) return nullptr;
        if (message->GetField<std::int64_t>(field(3), 0) != block.body) return nullptr;
        return message->GetPointer<const fb::Table*>(field(2));
    }
    // Places of a record batch's columns (1) or buffers (2).
    static std::vector<Place> places(const fb::Table* batch, int number)
    {
        const auto* list = batch->GetPointer<const fb::Vector<std::uint8_t>*>(field(number));
        std::vector<Place> out(list->size());
        if (!out.empty()) std::memcpy(static_cast<void*>(out.data()), list->Data(), out.size() * sizeof(Place));
        return out;
    }
    const char* body(const Block& block) const { return m_bytes.data() + block.offset + block.metadata; }

    void texts(const fb::Table* batch, const Block& block, std::size_t& buffer, std::vector<std::string>& out) const
    {
        const auto buffers = places(batch, 2);
        const auto count = batch->GetField<std::int64_t>(field(0), 0);
        const char* ends = body(block) + buffers[buffer + 1].first;
        const char* text = body(block) + buffers[buffer + 2].first;
        for (std::int64_t i = 0; i < count; ++i) {
            std::int32_t from = 0, to = 0;
            std::memcpy(&from, ends + 4 * i, 4);
            std::memcpy(&to, ends + 4 * (i + 1), 4);
            out.emplace_back(text + from, static_cast<std::size_t>(to - from));
        }
        buffer += 3;
    }

    void read(const Block& block)
    {
        ++batches;
        const fb::Table* batch = headerOf(block, 3);
        const auto count = static_cast<std::size_t>(batch->GetField<std::int64_t>(field(0), 0));
        const auto columns = places(batch, 1);
        const auto buffers = places(batch, 2);
        const std::size_t first = rows.size();
        rows.resize(first + count);
        std::size_t buffer = 0;
        for (unsigned c = 0; c < fields->size(); ++c) {
            const fb::Table* column = fields->Get(c);
            const auto* dictionary = column->GetPointer<const fb::Table*>(field(4));
            const bool text = column->GetField<std::uint8_t>(field(2), 0) == 5 && dictionary == nullptr;
            if (text) {
                std::vector<std::string> all;
                texts(batch, block, buffer, all);
                for (std::size_t i = 0; i < count; ++i) rows[first + i].push_back(all[i]);
                continue;
            }
            const fb::Table* type = dictionary != nullptr ? dictionary->GetPointer<const fb::Table*>(field(1))
                                                          : column->GetPointer<const fb::Table*>(field(3));
            const auto size = static_cast<std::size_t>(type->GetField<std::int32_t>(field(0), 0)) / 8;
            const char* valid = body(block) + buffers[buffer].first;
            const char* values = body(block) + buffers[buffer + 1].first;
            const bool allThere = buffers[buffer].second == 0;
            std::int64_t nulls = 0;
            for (std::size_t i = 0; i < count; ++i) {
                if (!allThere && (valid[i / 8] >> (i % 8) & 1) == 0) {
                    rows[first + i].emplace_back();
                    ++nulls;
                    continue;
                }
                std::int64_t value = 0; // little-endian, not negative here
                std::memcpy(&value, values + size * i, size);
                rows[first + i].push_back(
                    dictionary != nullptr
                        ? dictionaries[static_cast<std::size_t>(dictionary->GetField<std::int64_t>(field(0), 0))]
                                      [static_cast<std::size_t>(value)]
                        : std::to_string(value));
            }
            if (columns[c].second != nulls) rows[first].push_back("wrong count of nulls");
            buffer += 2;
        }
    }

    std::string m_bytes;
    std::string m_footer;
    std::vector<std::unique_ptr<std::string>> m_messages;
};

std::string wholeFile(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
}

// More spans than a batch holds: ops, work that is none, and work outside steps, whose names need quotes in a CSV.
Run sample(int spans)
{
    TimelineBuilder builder(Provenance::Imported, "wall", 3);
    const auto label = builder.intern("a \"quoted\" name, with a comma");
    const int compute = builder.addTrack(0, Lane::Compute);
    const int kernels = builder.addTrack(2, Lane::Kernel, "rank 2 stream 7");
    for (int i = 0; i < spans; ++i) {
        Span span;
        span.start = 10 * i;
        span.end = 10 * i + 7;
        span.step = i % 5 == 4 ? outsideSteps : i / 1000;
        if (i % 2 == 0) {
            span.op = makeOp(i % 4 == 0 ? OpKind::Forward : OpKind::InputGrad, i % 3, i % 7);
            builder.addSpan(compute, span);
        } else {
            span.label = label;
            builder.addSpan(kernels, span);
        }
    }
    Run run;
    run.info.name = "sample";
    run.info.ranks = 3;
    run.timeline = builder.build().value();
    return run;
}

} // namespace

class TestArrow : public QObject {
    Q_OBJECT

private slots:
    void rowsAreThoseOfTheCsv_data()
    {
        QTest::addColumn<int>("spans");
        QTest::addColumn<int>("batches");
        QTest::newRow("none") << 0 << 0;
        QTest::newRow("one") << 1 << 1;
        QTest::newRow("a batch") << 65'536 << 1;
        QTest::newRow("more") << 150'001 << 3;
    }
    void rowsAreThoseOfTheCsv()
    {
        QFETCH(int, spans);
        QFETCH(int, batches);
        const Run run = sample(spans);
        QTemporaryDir folder;
        ExportRequest request;
        request.run = &run;
        const auto write = [&](const char* format, const char* name) {
            request.path = folder.filePath(QLatin1String(name)).toStdString();
            const auto written = findFormat(format)->write(request);
            return written ? wholeFile(request.path) : written.error().message;
        };
        const std::string csv = write("spans", "a.csv");
        const std::string arrow = write("arrow", "a.arrow");
        QVERIFY(arrow.starts_with(std::string_view("ARROW1\0\0", 8)) && arrow.ends_with("ARROW1"));
        const ArrowReader reader(arrow);
        QCOMPARE(reader.batches, static_cast<std::size_t>(batches));
        QCOMPARE(reader.rows.size(), static_cast<std::size_t>(spans));
        std::vector<std::string> names;
        for (unsigned c = 0; c < reader.fields->size(); ++c)
            names.push_back(reader.fields->Get(c)->GetPointer<const fb::String*>(field(0))->str());
        std::string text = csvLine(names);
        for (const auto& row : reader.rows) text += csvLine(row);
        QVERIFY(text == csv);
    }

    // The schema keeps what the run is.
    void factsAreMetadata()
    {
        const Run run = sample(3);
        QTemporaryDir folder;
        ExportRequest request;
        request.run = &run;
        request.path = folder.filePath(QStringLiteral("a.feather")).toStdString();
        QVERIFY(findFormat("arrow")->write(request).has_value());
        QCOMPARE(formatOfSuffix(request.path), findFormat("arrow"));
        const ArrowReader reader(wholeFile(request.path));
        const auto* facts =
            reader.footer->GetPointer<const fb::Table*>(field(1))->GetPointer<ArrowReader::Tables>(field(2));
        std::map<std::string, std::string> found;
        for (unsigned i = 0; i < facts->size(); ++i)
            found[facts->Get(i)->GetPointer<const fb::String*>(field(0))->str()] =
                facts->Get(i)->GetPointer<const fb::String*>(field(1))->str();
        QCOMPARE(found.at("name"), std::string("sample"));
        QCOMPARE(found.at("ranks"), std::string("3"));
    }
};

QTEST_GUILESS_MAIN(TestArrow)
#include "tst_arrow.moc"
