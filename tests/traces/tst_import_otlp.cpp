// OpenTelemetry's spans read: JSON, a request a line and protobuf alike, by hand-derived tables; a step's passes
// counted; every span kept or counted as not; damage in words.
#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>

#include <QtTest/QtTest>
#include <nlohmann/json.hpp>
#include <protozero/pbf_builder.hpp>
#include <zlib.h>

#include "tests/traces/import_rig.h"
#include "traces/import/otlp/otlp.h"
#include "traces/import/otlp/otlp_fields.h"
#include "traces/import/otlp/otlp_protobuf.h"
#include "traces/import/perfetto/packets.h"
#include "traces/report/run_report.h"
#include "traces/run/rank_places.h"

using namespace stagewright;
using namespace stagewright::import_rig;
template <typename Field>
using Message = protozero::pbf_builder<Field>;

namespace {

using Json = nlohmann::json;
constexpr std::uint64_t epoch = 1'786'000'000'000'000'000;

struct Made {
    std::string name;
    std::uint64_t start = 0, end = 0; // ns after the epoch
    std::vector<std::pair<std::string, std::string>> attributes = {};
    std::uint64_t id = 0; // 0: by count
    int events = 0;
};
struct MadeProcess {
    std::vector<std::pair<std::string, std::string>> attributes;
    std::vector<Made> spans;
};

bool isWholeNumber(const std::string& text)
{
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// The test's own encoders.
Json jsonOf(const std::vector<std::pair<std::string, std::string>>& attributes)
{
    Json out = Json::array();
    for (const auto& [key, value] : attributes) {
        Json any;
        if (isWholeNumber(value))
            any["intValue"] = value;
        else if (value == "true" || value == "false")
            any["boolValue"] = value == "true";
        else
            any["stringValue"] = value;
        out.push_back({{"key", key}, {"value", any}});
    }
    return out;
}
std::string hex(std::uint64_t id) { return QString("%1").arg(id, 16, 16, QChar('0')).toUpper().toStdString(); }

std::string toJson(const std::vector<MadeProcess>& processes, int indent = -1)
{
    std::uint64_t id = 0;
    Json all = Json::array();
    for (const MadeProcess& process : processes) {
        Json spans = Json::array();
        for (const Made& made : process.spans) {
            ++id;
            Json span = {{"traceId", "11111111111111112222222222222222"},
                         {"spanId", hex(made.id > 0 ? made.id : id)},
                         {"kind", 1},
                         {"name", made.name},
                         {"attributes", jsonOf(made.attributes)},
                         {"unknown", {{"deep", Json::array({1, 2.5, nullptr})}}}};
            if (made.start > 0) span["startTimeUnixNano"] = std::to_string(epoch + made.start);
            if (made.end > 0) span["endTimeUnixNano"] = epoch + made.end; // a number is accepted, too
            for (int e = 0; e < made.events; ++e)
                span["events"].push_back({{"name", "e"}, {"attributes", Json::array()}});
            spans.push_back(span);
        }
        all.push_back({{"resource", {{"attributes", jsonOf(process.attributes)}}},
                       {"scopeSpans", {{{"scope", {{"name", "nemo.lens"}}}, {"spans", spans}}}}});
    }
    return Json{{"resourceSpans", all}}.dump(indent);
}

template <typename To, typename Field>
void addAttributes(To& to, Field field, const std::vector<std::pair<std::string, std::string>>& attributes)
{
    for (const auto& [key, value] : attributes) {
        Message<otlp::KeyValue> pair(to, field);
        pair.add_string(otlp::KeyValue::key, key);
        Message<otlp::AnyValue> any(pair, otlp::KeyValue::value);
        if (isWholeNumber(value))
            any.add_int64(otlp::AnyValue::whole, std::stoll(value));
        else if (value == "true" || value == "false")
            any.add_bool(otlp::AnyValue::boolean, value == "true");
        else
            any.add_string(otlp::AnyValue::text, value);
    }
}

std::string toProtobuf(const std::vector<MadeProcess>& processes)
{
    std::string bytes;
    std::uint64_t id = 0;
    Message<otlp::Request> request(bytes);
    for (const MadeProcess& process : processes) {
        Message<otlp::ResourceSpans> all(request, otlp::Request::resourceSpans);
        {
            Message<otlp::ScopeSpans> scope(all, otlp::ResourceSpans::scopeSpans);
            for (const Made& made : process.spans) {
                ++id;
                const std::uint64_t own = made.id > 0 ? made.id : id;
                Message<otlp::Span> span(scope, otlp::ScopeSpans::span);
                span.add_bytes(otlp::Span::traceId, std::string(16, '\x11'));
                span.add_bytes(otlp::Span::spanId, reinterpret_cast<const char*>(&own), sizeof own);
                span.add_string(otlp::Span::name, made.name);
                span.add_enum(otlp::Span::kind, 1);
                if (made.start > 0) span.add_fixed64(otlp::Span::start, epoch + made.start);
                if (made.end > 0) span.add_fixed64(otlp::Span::end, epoch + made.end);
                addAttributes(span, otlp::Span::attribute, made.attributes);
                for (int e = 0; e < made.events; ++e) span.add_bytes(otlp::Span::event, std::string());
            }
        }
        Message<otlp::Resource> resource(all,
                                         otlp::ResourceSpans::resource); // after the spans, as any order is allowed
        addAttributes(resource, otlp::Resource::attribute, process.attributes);
    }
    return bytes;
}

std::string framed(const std::string& message)
{
    std::string out;
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(message.size() >> shift);
    return out + message;
}

std::string gzipped(const std::string& bytes)
{
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::vector<std::pair<std::string, std::string>> megatron(int rank, int world, int pipeline)
{
    return {{"service.name", "megatron"},
            {"service.instance.id", "bench-7-rank" + std::to_string(rank)},
            {"dl.rank", std::to_string(rank)},
            {"dl.world_size", std::to_string(world)},
            {"dl.pipeline_parallel.size", std::to_string(pipeline)}};
}

// Two ranks, four microbatches, F 100, B 200 and a message 5 µs: 1F1B as it runs by hand, then gradients and optimizer.
std::vector<MadeProcess> twoRanks(int steps = 1)
{
    const std::string f = "megatron.microbatch.forward", b = "megatron.microbatch.backward", p = "megatron.p2p.";
    const std::vector<Made> first = {{f, 0, 100},     {p + "send_forward", 100, 105},
                                     {f, 105, 205},   {b, 310, 510},
                                     {f, 510, 610},   {b, 615, 815},
                                     {f, 815, 915},   {b, 920, 1120},
                                     {b, 1225, 1425}, {p + "recv_backward", 1120, 1225}};
    const std::vector<Made> second = {{p + "recv_forward", 1, 105},
                                      {f, 105, 205},
                                      {b, 205, 310},
                                      {f, 310, 410},
                                      {b, 410, 610},
                                      {f, 615, 715},
                                      {b, 715, 915},
                                      {f, 920, 1020},
                                      {b, 1020, 1220},
                                      {p + "send_backward", 1220, 1225}};
    std::vector<MadeProcess> out = {{megatron(0, 2, 2), {}}, {megatron(1, 2, 2), {}}};
    for (int step = 0; step < steps; ++step) {
        const auto at = static_cast<std::uint64_t>(step) * 1600 + 1000;
        for (int rank = 0; rank < 2; ++rank) {
            auto& to = out[static_cast<std::size_t>(rank)].spans;
            for (Made made : rank == 0 ? first : second) {
                made.start = (made.start + at) * 1000;
                made.end = (made.end + at) * 1000;
                to.push_back(made);
            }
            const auto add = [&](const char* name, std::uint64_t start, std::uint64_t end,
                                 std::vector<std::pair<std::string, std::string>> attributes = {}) {
                to.push_back({name, (start + at) * 1000, (end + at) * 1000, std::move(attributes)});
            };
            add("megatron.grad_sync.finish", 1430, 1450);
            add("megatron.train.iteration.optimizer", 1450, 1500);
            add("megatron.train.iteration.forward_backward", 0, 1430, {{"num_microbatches", "4"}});
            add("megatron.train.iteration", 0, 1500, {{"megatron.iteration", std::to_string(12 + step)}});
        }
    }
    return out;
}

std::size_t spansOf(const std::vector<MadeProcess>& processes)
{
    return std::accumulate(processes.begin(), processes.end(), std::size_t{0},
                           [](std::size_t sum, const MadeProcess& one) { return sum + one.spans.size(); });
}

Result<ForeignFile> readBytes(const std::string& bytes, bool json)
{
    const auto source = byteSourceOf(bytes);
    OtlpSpans spans;
    STAGEWRIGHT_CHECK(readOtlp(*source, json, {}, spans));
    return spans.finish();
}

// All that a rank has, as text.
std::string shown(const ForeignFile& file)
{
    std::string text;
    for (const ForeignRank& rank : file.ranks) {
        text += QString("rank %1 of %2\n").arg(rank.rank).arg(rank.worldSize).toStdString();
        for (const ForeignSpan& span : rank.annotations)
            text += rank.names[span.name] + ' ' + std::to_string(span.start) + ' ' + std::to_string(span.end) + ' ' +
                    rank.threads[span.thread].name + '\n';
        for (const ForeignMessage& message : rank.messages)
            text += QString("%1 → %2 at %3\n").arg(message.from).arg(message.to).arg(message.start).toStdString();
        for (const auto& [what, count] : rank.leftOut) text += what + ' ' + std::to_string(count) + '\n';
    }
    return text;
}

ImportResult importedBytes(const std::string& bytes, const char* name) { return importedText(bytes, name); }

std::string rowsOf(const Run& run)
{
    std::string text;
    for (const auto& row : run.schedule->order) {
        for (const Op& op : row) text += toText(op) + ' ';
        text.back() = '\n';
    }
    return text;
}

} // namespace

class TestImportOtlp : public QObject {
    Q_OBJECT

private slots:
    void encodingsAreAlike()
    {
        const auto made = twoRanks(2);
        const std::string json = toJson(made), bytes = toProtobuf(made);
        const auto first = readBytes(json, true);
        QVERIFY2(first, first ? "" : first.error().message.c_str());
        std::size_t kept = 0;
        for (const ForeignRank& rank : first->ranks) kept += rank.annotations.size();
        QCOMPARE(kept, spansOf(made));
        const std::string expected = shown(*first);
        std::string lines;
        for (const MadeProcess& process : made) { // ids are of the whole: a line a process
            auto alone = made;
            for (MadeProcess& one : alone)
                if (one.attributes != process.attributes) one.spans.clear();
            std::uint64_t id = process.attributes == made[0].attributes ? 0 : 1000;
            for (MadeProcess& one : alone)
                for (Made& span : one.spans) span.id = ++id;
            lines += toJson(alone) + "\n";
        }
        const std::string parts = toProtobuf({made[0]});
        auto second = made[1];
        std::uint64_t id = 5000;
        for (Made& span : second.spans) span.id = ++id;
        const std::string rest = toProtobuf({second});
        const std::vector<std::pair<std::string, const char*>> forms = {{json, "a.json"},
                                                                        {toJson(made, 2), "a.json"},
                                                                        {"[" + json + "]", "a.json"},
                                                                        {"\xef\xbb\xbf" + lines, "a.jsonl"},
                                                                        {bytes, "a.otlp"},
                                                                        {parts + rest, "a.otlp"},
                                                                        {framed(bytes), "a.otlp"},
                                                                        {framed(parts) + framed(rest), "a.otlp"},
                                                                        {gzipped(json), "a.json.gz"},
                                                                        {gzipped(bytes), "a.otlp"}};
        QTemporaryDir folder;
        for (const auto& [text, name] : forms) {
            const std::string path = folder.filePath(name).toStdString();
            std::ofstream(path, std::ios::binary) << text;
            const FormatInfo* format = formatOfHead(headOf(path));
            QVERIFY(format != nullptr);
            QCOMPARE(std::string(format->name), std::string("otlp"));
            const auto file = format->read(path, {}, {});
            QVERIFY2(file, file ? "" : file.error().message.c_str());
            QCOMPARE(shown(*file), expected);
        }
        QVERIFY(!startsLikePerfetto(bytes));
        QVERIFY(startsLikeOtlp(bytes.substr(0, bytes.size() / 2)));
    }

    void stepByHand()
    {
        const auto made = twoRanks(3);
        for (const bool json : {true, false}) {
            const ImportResult result =
                importedBytes(json ? toJson(made) : toProtobuf(made), json ? "job.json" : "job.otlp");
            QCOMPARE(result.runs.size(), std::size_t{1});
            const ImportedRun& one = result.runs.front();
            QCOMPARE(one.run.info.name, std::string("job"));
            QCOMPARE(one.run.info.ranks, 2);
            QCOMPARE(one.run.info.steps, 3);
            QCOMPARE(one.recognised, std::string("1f1b"));
            QCOMPARE(one.ops, std::int64_t{3 * 2 * (8 + 2)}); // passes, gradients, optimizer
            QCOMPARE(one.events, static_cast<std::int64_t>(spansOf(made)));
            QVERIFY(one.leftOut.empty());
            QCOMPARE(rowsOf(one.run),
                     std::string("0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3\n1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3\n"));
            QCOMPARE(one.messages, std::int64_t{3 * 2}); // single calls have spans, those of the steady state none
            QCOMPARE(one.unpaired, std::int64_t{0});
            // Each op at its times: those of step 2, from its start.
            std::map<std::string, std::pair<Nanos, Nanos>> times;
            const Timeline& timeline = *one.run.timeline;
            for (const Track& track : timeline.tracks())
                for (std::size_t s = track.begin; s < track.end; ++s) {
                    const Span& span = timeline.spans()[s];
                    if (span.step != 1 || track.lane == Lane::Other) continue;
                    times[std::to_string(track.rank) + " " + toText(span.op)] = {(span.start - 1'600'000) / 1000,
                                                                                 (span.end - 1'600'000) / 1000};
                }
            const std::map<std::string, std::pair<Nanos, Nanos>> expected = {
                {"0 0F0", {0, 100}},      {"0 0F1", {105, 205}},      {"0 0B0", {310, 510}},
                {"0 0F2", {510, 610}},    {"0 0B1", {615, 815}},      {"0 0F3", {815, 915}},
                {"0 0B2", {920, 1120}},   {"0 0B3", {1225, 1425}},    {"0 0REDUCE_GRAD", {1430, 1450}},
                {"0 0OPT", {1450, 1500}}, {"0 0SEND_F0", {100, 105}}, {"0 0RECV_B3", {1120, 1225}},
                {"1 1F0", {105, 205}},    {"1 1B0", {205, 310}},      {"1 1F1", {310, 410}},
                {"1 1B1", {410, 610}},    {"1 1F2", {615, 715}},      {"1 1B2", {715, 915}},
                {"1 1F3", {920, 1020}},   {"1 1B3", {1020, 1220}},    {"1 1REDUCE_GRAD", {1430, 1450}},
                {"1 1OPT", {1450, 1500}}, {"1 1RECV_F0", {1, 105}},   {"1 1SEND_B3", {1220, 1225}}};
            QCOMPARE(times.size(), expected.size());
            for (const auto& [op, at] : expected) {
                const auto found = times.find(op);
                QVERIFY2(found != times.end(), op.c_str());
                QVERIFY2(found->second == at, op.c_str());
            }
        }
    }

    // PP 2, two chunks, groups of two: rank 0 holds stages 0 and 2.
    void chunksByTheTable()
    {
        const auto process = [](int rank) {
            MadeProcess made{megatron(rank, 2, 2), {}};
            for (std::uint64_t k = 0; k < 8; ++k)
                made.spans.push_back({"megatron.microbatch.forward", 1 + 10 * k, 9 + 10 * k});
            for (std::uint64_t k = 8; k < 16; ++k)
                made.spans.push_back({"megatron.microbatch.backward", 1 + 10 * k, 9 + 10 * k});
            made.spans.push_back({"megatron.train.iteration.forward_backward", 1, 170, {{"num_microbatches", "4"}}});
            made.spans.push_back({"megatron.train.iteration", 1, 180, {{"megatron.iteration", "1"}}});
            return made;
        };
        const auto file = readBytes(toJson({process(0), process(1)}), true);
        QVERIFY(file);
        for (const int rank : {0, 1}) {
            std::string text;
            for (const ForeignSpan& span : file->ranks[static_cast<std::size_t>(rank)].annotations) {
                const std::string& name = file->ranks[static_cast<std::size_t>(rank)].names[span.name];
                const auto meaning = LabelRules::builtIn().meaningOf(name);
                if (meaning && meaning->what == LabelMeaning::What::Op) text += toText(meaning->ops.front()) + ' ';
            }
            QCOMPARE(text, rank == 0 ? std::string("0F0 0F1 2F0 2F1 0F2 0F3 2F2 2F3 2B0 2B1 0B0 0B1 2B2 2B3 0B2 0B3 ")
                                     : std::string("1F0 1F1 3F0 3F1 1F2 1F3 3F2 3F3 3B0 3B1 1B0 1B1 3B2 3B3 1B2 1B3 "));
        }
        // Numbers that do not fit are not forced: passes are counted in order, which is said.
        auto uneven = process(0);
        uneven.spans.erase(uneven.spans.begin());
        const auto counted = readBytes(toJson({uneven}), true);
        QVERIFY(counted);
        QVERIFY(
            std::any_of(counted->ranks[0].notes.begin(), counted->ranks[0].notes.end(), [](const std::string& note) {
                return note.find("other numbers of forward and backward spans") != std::string::npos;
            }));
    }

    // The rank's place in a job of 8 ranks, 4 stages: 5 div 2.
    void oneRankOfMany()
    {
        MadeProcess made{megatron(5, 8, 4),
                         {{"megatron.train.iteration", 1, 9'000'001, {{"megatron.iteration", "12"}}},
                          {"megatron.microbatch.forward", 1'000'001, 5'000'001},
                          {"megatron.microbatch.backward", 5'000'001, 8'000'001}}};
        const ImportResult result = importedBytes(toJson({made}), "job.json");
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs.front();
        QCOMPARE(one.ops, std::int64_t{2});
        QVERIFY(!one.run.schedule); // unknown, with the reason
        QVERIFY2(one.notRebuilt.find("stage 0 is in no row") != std::string::npos, one.notRebuilt.c_str());
        QVERIFY(std::find(one.notes.begin(), one.notes.end(), "only 1 of the job's 8 ranks was imported") !=
                one.notes.end());
        const auto places = placesOf(one.run);
        QCOMPARE(places.size(), std::size_t{1});
        QCOMPARE(places[0].place[static_cast<std::size_t>(ParallelDimension::Pipeline)], 2);
        std::string ops;
        for (const Span& span : one.run.timeline->spans())
            if (span.label == 0) ops += toText(span.op) + ' ';
        QCOMPARE(ops, std::string("2F0 2B0 "));
        // What other ranks would say is unknown, never zero.
        const auto report = reportOf(one.run);
        QVERIFY(report);
        const auto figures = report->figures();
        for (const char* key : {"bubble_fraction", "idle", "idle_by_cause.warmup", "idle_by_cause.transfer",
                                "overlap.comm_time", "overlap.messages"})
            QCOMPARE(document::findFigure(figures, key)->unknown,
                     std::string("only 1 of the pipeline's 4 ranks is in the run"));
        const auto* busy = document::findFigure(figures, "busy");
        QVERIFY(busy->unknown.empty());
        QCOMPARE(busy->value, 7e6);
    }

    void numbersOfAttributes()
    {
        MadeProcess first{{{"service.name", "mine"}, {"rank", "0"}},
                          {{"forward", 1, 11, {{"stage", "0"}, {"microbatch", "0"}}},
                           {"p2p.send", 11, 12, {{"peer", "1"}, {"bytes", "4096"}, {"microbatch", "0"}}},
                           {"p2p.recv", 30, 40, {{"peer", "1"}}},
                           {"backward", 40, 60, {{"stage", "0"}, {"microbatch", "0"}}},
                           {"optimizer", 60, 70},
                           {"loader", 5, 50, {{"thread.name", "loader"}}}}};
        MadeProcess second{{{"service.name", "mine"}, {"rank", "1"}},
                           {{"p2p.recv", 2, 13, {{"peer", "0"}}},
                            {"forward", 13, 20, {{"stage", "1"}, {"microbatch", "0"}}},
                            {"backward", 20, 30, {{"stage", "1"}, {"microbatch", "0"}}},
                            {"p2p.send", 30, 31, {{"peer", "0"}}},
                            {"optimizer", 60, 70}}};
        const ImportResult result = importedBytes(toProtobuf({first, second}), "job.otlp");
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs.front();
        QVERIFY(one.run.schedule != nullptr);
        QCOMPARE(rowsOf(one.run), std::string("0F0 0B0\n1F0 1B0\n"));
        QCOMPARE(one.messages, std::int64_t{2});
        QCOMPARE(one.unpaired, std::int64_t{0});
        // The same spans under other names, by rules.
        for (MadeProcess* process : {&first, &second})
            for (Made& span : process->spans)
                if (span.name == "forward" || span.name == "backward") span.name = "my " + span.name.substr(0, 4);
        QTemporaryDir folder;
        const std::string path = folder.filePath("job.json").toStdString();
        std::ofstream(path) << toJson({first, second});
        ImportOptions options;
        options.rules = *LabelRules::parse("F my forw stage {stage} microbatch {microbatch}\n"
                                           "B my back stage {stage} microbatch {microbatch}\n");
        const ImportResult ruled = imported({path}, options);
        QCOMPARE(ruled.runs.size(), std::size_t{1});
        QVERIFY(ruled.runs[0].run.schedule != nullptr);
        QCOMPARE(rowsOf(ruled.runs[0].run), std::string("0F0 0B0\n1F0 1B0\n"));
    }

    void everySpanIsCounted()
    {
        std::vector<MadeProcess> made = twoRanks();
        auto& spans = made[0].spans;
        spans.push_back({"no end", 1, 0});
        spans.push_back({"no start", 0, 5});
        spans.push_back({"", 1, 2});
        spans.push_back({"backwards", 9, 3});
        spans.push_back({"cut", 1, 2, {{"nemo.span.truncated", "true"}}});
        spans.push_back({"twice", 1, 2, {}, 900});
        spans.push_back({"twice", 1, 2, {}, 900});
        spans.push_back({"with events", 1, 2, {}, 0, 3});
        made.push_back({{{"service.name", "loader"}}, {{"a", 1, 2}, {"b", 1, 2}}});
        auto other = megatron(0, 2, 2);
        other[1].second = "bench-8-rank0";
        made.push_back({other, {{"c", 1, 2}}});
        for (const bool json : {true, false}) {
            const auto file = readBytes(json ? toJson(made) : toProtobuf(made), json);
            QVERIFY(file);
            const std::map<std::string, std::int64_t> expected = {
                {"spans without a start or an end", 2},
                {"spans without a name", 1},
                {"spans that end before they start", 1},
                {"spans whose end is not real (nemo.span.truncated)", 1},
                {"spans that were sent twice", 1},
                {"spans of processes without a rank", 2},
                {"spans of other jobs", 1},
                {"events within spans", 3}};
            const auto& left = file->ranks.front().leftOut;
            QCOMPARE((std::map<std::string, std::int64_t>(left.begin(), left.end())), expected);
            std::size_t kept = 0;
            for (const ForeignRank& rank : file->ranks) kept += rank.annotations.size();
            QCOMPARE(kept + 9, spansOf(made)); // all but the events within them
        }
    }

    void damageInWords()
    {
        const auto made = twoRanks();
        const std::string line = toJson(made), bytes = toProtobuf(made);
        // A bad line: the others are kept.
        auto later = twoRanks(2);
        for (MadeProcess& process : later) process.spans.erase(process.spans.begin(), process.spans.begin() + 14);
        std::uint64_t id = 7000;
        for (MadeProcess& process : later)
            for (Made& span : process.spans) span.id = ++id;
        std::string lines = line + "\n{\"resourceSpans\":[{\"scopeSpans\":nope}]}\n" + toJson(later) + "\n";
        const auto file = readBytes(lines, true);
        QVERIFY(file);
        QCOMPARE(file->ranks.front().damaged, std::int64_t{1});
        QVERIFY2(std::any_of(file->ranks[0].notes.begin(), file->ranks[0].notes.end(),
                             [](const std::string& note) { return note.starts_with("line 2: "); }),
                 shown(*file).c_str());
        QCOMPARE(file->ranks[0].annotations.size() + file->ranks[1].annotations.size(), spansOf(made) + spansOf(later));
        // Cut off anywhere: what was whole is there, or an error with a remedy.
        std::size_t before = 0;
        for (std::size_t size = 0; size < bytes.size(); size += 7) {
            const auto part = readBytes(bytes.substr(0, size), false);
            if (!part) {
                QVERIFY(!part.error().message.empty() && !part.error().remedy.empty());
                continue;
            }
            std::size_t kept = 0;
            for (const ForeignRank& rank : part->ranks) kept += rank.annotations.size();
            QVERIFY(kept >= before && kept < spansOf(made));
            QVERIFY(part->ranks.front().damaged > 0);
            before = kept;
        }
        QVERIFY(before > 0);
        for (std::size_t size = 0; size < line.size(); size += 7) {
            const auto part = readBytes(line.substr(0, size), true);
            if (part)
                QVERIFY(part->ranks.front().damaged == 1);
            else
                QVERIFY(!part.error().message.empty() && !part.error().remedy.empty());
        }
        const std::string deep(100'000, '[');
        const auto refused = readBytes("{\"resourceSpans\":" + deep, true);
        QVERIFY(!refused);
        QVERIFY2(refused.error().message.find("levels of brackets") != std::string::npos,
                 refused.error().message.c_str());
        for (const char* text : {"{\"resourceSpans\":[]}", "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[]}]}]}"}) {
            const auto empty = readBytes(text, true);
            QVERIFY(!empty);
            QCOMPARE(empty.error().message, std::string("it has no spans"));
        }
    }
};

QTEST_APPLESS_MAIN(TestImportOtlp)
#include "tst_import_otlp.moc"
