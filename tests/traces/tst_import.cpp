// Traces of other tools: what is read of them, joined, and made runs of. The recorded ones (STAGEWRIGHT_SHARED) skip where absent.
#include <QtTest/QtTest>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "schedules/csv.h"
#include "schedules/kinds.h"
#include "schedules/lower.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/bubbles.h"
#include "traces/fit/residuals.h"
#include "traces/formats/kineto_event.h"
#include "traces/formats/kineto_json.h"
#include "traces/import/clock_alignment.h"
#include "traces/import/export_groups.h"
#include "traces/import/import.h"
#include "traces/import/json_events.h"
#include "traces/import/message_pairs.h"
#include "traces/store/run_file.h"

using namespace stagewright;
namespace fs = std::filesystem;

namespace {

// JSON with ' for ": moc does not follow raw strings.
std::string quoted(std::string text)
{
    std::replace(text.begin(), text.end(), '\'', '"');
    return text;
}

std::string dataFile(const char* name)
{
    return std::string(STAGEWRIGHT_SOURCE_DIR) + "/tests/data/traces/" + name;
}

fs::path sharedFolder(const char* name)
{
    return fs::path(qEnvironmentVariable("STAGEWRIGHT_SHARED").toStdString()) / "fixtures" / name;
}

std::string textOf(const fs::path& path)
{
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

ImportResult imported(const std::vector<std::string>& words, const ImportOptions& options = {})
{
    auto result = importTraces(words, options);
    if (!result) qWarning("%s", result.error().message.c_str());
    return result ? std::move(*result) : ImportResult{};
}

Result<ForeignFile> readText(const std::string& text, const ImportOptions& options = {})
{
    const auto source = byteSourceOf(text);
    return readJsonTrace(*source, "text_rank0.json", options, {});
}

// What is kept of a text, read in windows and batches of these sizes.
struct Kept {
    std::vector<std::tuple<Nanos, Nanos, std::string>> spans;
    std::int64_t events = 0, damaged = 0, repaired = 0;
    std::string error;
    bool operator==(const Kept&) const = default;
};

Kept keptOf(const std::string& text, const JsonEvents::Sizes& sizes)
{
    const auto source = byteSourceOf(text);
    const auto file = readJsonTrace(*source, "text_rank0.json", {}, {}, sizes);
    Kept kept;
    if (!file) {
        kept.error = file.error().message;
        return kept;
    }
    const ForeignRank& rank = file->ranks[0];
    for (const ForeignSpan& span : rank.annotations) kept.spans.emplace_back(span.start, span.end, rank.names[span.name]);
    kept.events = rank.events;
    kept.damaged = rank.damaged;
    kept.repaired = rank.repaired;
    return kept;
}

std::vector<std::string> eventsOf(const std::string& text, std::string* lastMember = nullptr, std::int64_t* damaged = nullptr, const JsonEvents::Sizes& sizes = {})
{
    const auto source = byteSourceOf(text);
    JsonEvents events(*source, {}, sizes);
    JsonEvents::Item item;
    std::vector<std::string> out;
    while (true) {
        const auto more = events.next(item);
        if (!more || !*more) break;
        for (std::size_t i = 0; i < item.events; ++i) out.emplace_back(events.event(i));
        if (item.member && lastMember != nullptr) *lastMember = item.key;
    }
    if (damaged != nullptr) *damaged = events.damaged();
    return out;
}

// One run of a JSON text, read as a file.
ImportResult importedText(const std::string& text, const char* name = "trace_rank0.json")
{
    QTemporaryDir folder;
    const std::string path = folder.filePath(QString::fromLatin1(name)).toStdString();
    std::ofstream(path, std::ios::binary) << text;
    return imported({path});
}

std::size_t countLane(const Timeline& timeline, Lane lane)
{
    std::size_t count = 0;
    for (const Track& track : timeline.tracks())
        if (track.lane == lane) count += track.end - track.begin;
    return count;
}

std::size_t countEdges(const Timeline& timeline, EdgeKind kind)
{
    return static_cast<std::size_t>(std::count_if(timeline.edges().begin(), timeline.edges().end(), [kind](const Edge& edge) { return edge.kind == kind; }));
}

bool notesSay(const ImportedRun& run, const char* what)
{
    return std::any_of(run.notes.begin(), run.notes.end(), [what](const std::string& note) { return note.find(what) != std::string::npos; });
}

} // namespace

class TestImport : public QObject {
    Q_OBJECT

private slots:
    void timesAreExact()
    {
        QCOMPARE(nanosOfMicroseconds("4331969872415.343").value(), Nanos{4'331'969'872'415'343});
        QCOMPARE(nanosOfMicroseconds("1694128201435418").value(), Nanos{1'694'128'201'435'418'000});
        QCOMPARE(nanosOfMicroseconds("\"12.5\"").value(), Nanos{12'500});
        QCOMPARE(nanosOfMicroseconds("-0.0015").value(), Nanos{-2});
        QCOMPARE(nanosOfMicroseconds("1.5e3").value(), Nanos{1'500'000});
        QVERIFY(!nanosOfMicroseconds("NaN"));
        QVERIFY(!nanosOfMicroseconds("99999999999999999999"));
        QVERIFY(!nanosOfMicroseconds(""));
    }

    void eventsAreCutAsTheyStand()
    {
        const std::string a = quoted("{'name':'a \\' } ] {','args':{'list':[1,[2,{}]]}}");
        const std::string b = quoted("{'ph':'X','name':'\\\\'}");
        std::string member;
        const auto inObject = eventsOf("\xef\xbb\xbf {\"first\": \"}\", \"traceEvents\" : [ " + a + " ,\n" + b + " ] , \"baseTimeNanoseconds\": 12 }", &member);
        QCOMPARE(inObject, (std::vector<std::string>{a, b}));
        QCOMPARE(member, std::string("baseTimeNanoseconds"));
        QCOMPARE(eventsOf("[" + a + "," + b), (std::vector<std::string>{a, b})); // the bracket may be missing
        // Through every place of the window's edge.
        std::string many = "[";
        for (int i = 0; i < 60'000; ++i) many += (i == 0 ? "" : ",") + a + std::string(static_cast<std::size_t>(i % 7), ' ') + "," + b;
        std::int64_t damaged = 0;
        QCOMPARE(eventsOf(many + "]", nullptr, &damaged).size(), std::size_t{120'000});
        QCOMPARE(damaged, std::int64_t{0});
        // Batches are arrays of what they hold, and end with the event that reaches their size.
        const auto source = byteSourceOf("[" + a + " ,\n" + b + "," + a + ",," + b + " " + a + "]");
        JsonEvents events(*source, {}, {1 << 20, a.size() + 1});
        JsonEvents::Item item;
        std::vector<std::string> batches;
        while (*events.next(item)) batches.emplace_back(item.text);
        QCOMPARE(batches, (std::vector<std::string>{"[" + a + " ,\n" + b + "]", "[" + a + "]", "[" + b + "]", "[" + a + "]"}));
    }

    // Whatever borders of windows and batches fall upon, the same is read.
    void bordersDoNotMatter()
    {
        const auto span = [](int at, const std::string& name, const std::string& more = {}) {
            return quoted("{'ph':'X','cat':'user_annotation','pid':1,'tid':1,'ts':" + std::to_string(at) + ",'dur':2.5,'name':'") + name + quoted("'") + more + "}";
        };
        const auto nested = [](std::size_t depth) {
            std::string text = ",\"args\":";
            for (std::size_t i = 0; i < depth; ++i) text += "{\"a\":[";
            for (std::size_t i = 0; i < depth; ++i) text += "]}";
            return text;
        };
        std::string text = "{\"schemaVersion\":1,\"traceEvents\":[";
        int at = 0;
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < 40; ++i) text += span(++at, "x" + std::string(static_cast<std::size_t>(i), 'y') + "\\\"}{") + (i % 3 == 0 ? " , \n" : ",");
            text += span(++at, "nested", nested(300)) + ",";
            text += span(++at, "deep", nested(5000)) + ",";
            text += span(++at, "long" + std::string(70'000, 'z')) + ",";
            text += span(++at, "bad \xff\xc3( utf") + ",";
            text += span(++at, "line\nbreak") + ",";
            text += quoted("{'ph':'X','name':'no time','pid':1,'tid':1,'dur':1},");
            text += quoted("{'ph':'X','ts':1,,'name':'torn'},");
            text += quoted("{'ph':'X','ts':7,'name':'two'}{'ph':'X','ts':8,'name':'without a comma'},,");
        }
        const std::string whole = text + span(++at, "last") + "],\"baseTimeNanoseconds\":5}";
        const Kept usual = keptOf(whole, {});
        QCOMPARE(usual.error, std::string());
        QCOMPARE(usual.spans.size(), std::size_t{3 * 47 + 1});
        QCOMPARE(usual.repaired, std::int64_t{6});
        QVERIFY(usual.damaged >= 6);
        QCOMPARE(std::get<2>(usual.spans.back()), std::string("last"));
        for (const JsonEvents::Sizes sizes : {JsonEvents::Sizes{16, 1}, JsonEvents::Sizes{61, 200}, JsonEvents::Sizes{1000, 64}, JsonEvents::Sizes{4096, 1 << 20}, JsonEvents::Sizes{1 << 20, 1}})
            QVERIFY2(keptOf(whole, sizes) == usual, std::to_string(sizes.window).c_str());
        // Cut off anywhere: what was whole is there, and no more.
        std::size_t before = 0;
        for (std::size_t size = 30; size < 12'000; size += 89) {
            const Kept part = keptOf(whole.substr(0, size), {37, 150});
            QVERIFY(part == keptOf(whole.substr(0, size), {}));
            QVERIFY(part.spans.size() >= before);
            before = part.spans.size();
        }
        QVERIFY(before > 40);
    }

    // An event that is too long is left out wherever it begins, and so is one that never ends.
    void longEventsAreLeftOut()
    {
        const std::string small = quoted("{'ph':'X','name':'small','pid':1,'tid':1,'ts':5,'dur':1}");
        const std::string most = quoted("{'ph':'X','pid':1,'tid':1,'ts':6,'dur':1,'name':'") + std::string(JsonEvents::mostEventBytes - 100, 'm') + "\"}";
        const std::string over = quoted("{'ph':'X','pid':1,'tid':1,'ts':7,'dur':1,'name':'") + std::string(JsonEvents::mostEventBytes + (1 << 21), 'o') + "\"}";
        for (const JsonEvents::Sizes sizes : {JsonEvents::Sizes{}, JsonEvents::Sizes{5000, 300}}) {
            const Kept kept = keptOf("[" + small + "," + most + "," + over + "," + small + "]", sizes);
            QCOMPARE(kept.spans.size(), std::size_t{3});
            QCOMPARE(kept.damaged, std::int64_t{1});
            const Kept open = keptOf("[" + small + "," + over.substr(0, over.size() - 2), sizes);
            QCOMPARE(open.spans.size(), std::size_t{1});
            QCOMPARE(open.damaged, std::int64_t{1});
        }
    }

    void damageIsSteppedOver()
    {
        const std::string good = quoted("{'ph':'X','cat':'user_annotation','name':'PP:0F0','pid':1,'tid':1,'ts':1,'dur':2}");
        const auto readOf = [&](const std::string& bad) {
            auto file = readText("[" + good + "," + bad + "," + good + "," + good + "]");
            if (!file) return std::pair<std::size_t, std::int64_t>(0, -1);
            return std::pair(file->ranks[0].annotations.size(), file->ranks[0].damaged);
        };
        for (const std::string& bad : {quoted("{'ph':'X','name':'open,'ts':1}"), quoted("{'ph':'X','name':'no time'}"), std::string("17"), std::string("}"), quoted("{'ph':'X','ts':'x','dur':1}"), quoted("{'ph':'X','ts':1,'dur':-1}")}) {
            const auto [kept, damaged] = readOf(bad);
            QVERIFY2(kept == 3, bad.c_str());
            QVERIFY2(damaged >= 1, bad.c_str());
        }
        // bad characters in a name are replaced
        auto repaired = readText("[{\"ph\":\"X\",\"name\":\"a\nb\xff\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}]");
        QVERIFY(repaired);
        QCOMPARE(repaired->ranks[0].repaired, std::int64_t{1});
        // a file cut off anywhere: never more than what is there, told
        const std::string whole = textOf(dataFile("gpu_rank4.json"));
        std::size_t before = 0;
        for (std::size_t size = 0; size < whole.size() - 200; size += 97) {
            const auto part = readText(whole.substr(0, size));
            if (!part) continue;
            const std::size_t kept = part->ranks[0].annotations.size() + part->ranks[0].device.size();
            QVERIFY(kept >= before);
            QVERIFY(!part->ranks[0].notes.empty());
            before = kept;
        }
        QVERIFY(before > 40);
    }

    void largeEventsAndManyDamagesEnd()
    {
        std::string text = "[{\"ph\":\"X\",\"name\":\"" + std::string(3 << 20, 'x') + "\",\"ts\":1,\"dur\":1}";
        text += quoted(",{'ph':'X','name':'small','pid':1,'tid':1,'ts':5,'dur':1}]");
        const auto file = readText(text);
        QVERIFY(file);
        QCOMPARE(file->ranks[0].annotations.size(), std::size_t{1});
        std::string deep = "[" + std::string(200'000, '[');
        QVERIFY(!readText(deep));
        std::string torn = "[";
        for (int i = 0; i < 20'000; ++i) torn += "{\"ph\":1,,},";
        const auto given = readText(torn + quoted("{'ph':'X','name':'small','pid':1,'tid':1,'ts':5,'dur':1}]"));
        QVERIFY(!given || !given->ranks[0].notes.empty());
    }

    void namesMeanOps_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("ops");
        QTest::newRow("forward") << "PP:2F13" << "2F13";
        QTest::newRow("send") << "PP:0SEND_F1" << "0SEND_F1";
        QTest::newRow("unshard") << "PP:1UNSHARD" << "1UNSHARD";
        QTest::newRow("pair") << "PP:(0F3;7B1)OVERLAP_F_B" << "0F3 7B1";
        QTest::newRow("nvtx") << "PP:3I1, op_id = 17" << "3I1";
        QTest::newRow("old") << "PP:1BW4" << "1B4";
        QTest::newRow("pass") << "Forward 3" << "0F3";
        QTest::newRow("letters") << "W4.1.0" << "0W4.0";
        QTest::newRow("full") << "BW4.1.0" << "0B4.0";
        QTest::newRow("megatron") << "backward_step" << "0B0";
        QTest::newRow("trailing") << "PP:2F13x" << "";
        QTest::newRow("nothing") << "aten::mm" << "";
        QTest::newRow("huge") << "Forward 99999999999" << "";
    }

    void namesMeanOps()
    {
        QFETCH(QString, name);
        QFETCH(QString, ops);
        const auto meaning = LabelRules::builtIn().meaningOf(name.toStdString());
        std::string text;
        if (meaning)
            for (const Op& op : meaning->ops) text += (text.empty() ? "" : " ") + toText(op);
        QCOMPARE(text, ops.toStdString());
    }

    void rulesOfTheUserComeFirst()
    {
        const auto rules = LabelRules::parse("# names\nF  pass {microbatch-1} of chunk {chunk}*\nstep it {step}\nignore PP:0F9\nB \\*{stage}\\{ {microbatch}\n");
        QVERIFY(rules);
        const auto pass = rules->meaningOf("pass 3 of chunk 1, warm");
        QVERIFY(pass);
        QCOMPARE(pass->ops[0].microbatch, 2);
        QCOMPARE(pass->chunk, 1);
        QVERIFY(!pass->saysStage && pass->saysMicrobatch);
        QCOMPARE(rules->meaningOf("it 12")->step, std::int64_t{12});
        QVERIFY(rules->meaningOf("PP:0F9")->what == LabelMeaning::What::Ignore);
        QCOMPARE(toText(rules->meaningOf("*2{ 5")->ops[0]), std::string("2B5"));
        QVERIFY(!rules->meaningOf("pass 0 of chunk 1")); // −1 is no microbatch
        for (const char* bad : {"X name", "F", "F {stge}", "F {stage", "action PP:{stage}", "F {action}"}) {
            const auto refused = LabelRules::parse(std::string("\n") + bad);
            QVERIFY2(!refused, bad);
            QVERIFY(refused.error().message.starts_with("line 2"));
            QVERIFY(!refused.error().remedy.empty());
        }
        // stars do not take for ever
        std::string stars = "F ";
        for (int i = 0; i < 30; ++i) stars += "*a";
        QVERIFY(!LabelRules::parse(stars + "b{microbatch}")->meaningOf(std::string(500, 'a')));
    }

    void numbersOfRanksFromNames()
    {
        QCOMPARE(rankInName("GPipe_rank3.json.gz").rank, 3);
        QCOMPARE(rankInName("worker7_step_12.1694128201545.pt.trace.json.gz").rank, 7);
        QCOMPARE(rankInName("rank-12.json").rank, 12);
        QCOMPARE(rankInName("trace_5.json").rank, 5);
        QCOMPARE(rankInName("host_4711.1694128201545.pt.trace.json").rank, 4711); // a number before the suffix is all there is
        QCOMPARE(rankInName("prank3.json").rank, -1);
        QCOMPARE(rankInName("trace.json").rank, -1);
    }

    void filesOfOneJob()
    {
        using Groups = std::vector<std::vector<std::size_t>>;
        QCOMPARE(groupsOf({"d/a_rank0.json", "d/a_rank1.json", "d/b_rank0.json", "d/b_rank1.json"}, {0, 1, 0, 1}, {2, 2, 2, 2}), (Groups{{0, 1}, {2, 3}}));
        QCOMPARE(groupsOf({"d/h1_11.123456789012.json", "d/h2_12.123456789999.json"}, {0, 1}, {2, 2}), (Groups{{0, 1}}));
        QCOMPARE(groupsOf({"d/rank0/t.json", "d/rank1/t.json"}, {0, 1}, {0, 0}), (Groups{{0, 1}}));
        QCOMPARE(groupsOf({"d/x.json", "d/y.json"}, {-1, -1}, {0, 0}), (Groups{{0}, {1}}));
        QCOMPARE(groupsOf({"d/s_rank0.111111111.json", "d/s_rank0.222222222.json", "d/s_rank1.111111111.json"}, {0, 0, 1}, {2, 2, 2}), (Groups{{0, 2}, {1}}));
    }

    void clocksMeetAtTheFastestMessages()
    {
        ClockBounds bounds; // rank 1 is 1,000 ahead; messages take 10 and 30
        bounds.add(0, 0, 1, 1010);
        bounds.add(0, 100, 1, 1300);
        bounds.add(1, 2000, 0, 1030);
        const ClockAlignment ahead = bounds.align(3);
        QCOMPARE(ahead.correction, (std::vector<Nanos>{0, -990, 0}));
        QCOMPARE(ahead.error, Nanos{20});
        QCOMPARE(ahead.corrected, 1);
        ClockBounds agree;
        agree.add(0, 0, 1, 15);
        agree.add(1, 20, 0, 30);
        QCOMPARE(agree.align(2).correction, (std::vector<Nanos>{0, 0}));
        QCOMPARE(agree.align(2).error, Nanos{15});
        ClockBounds one; // one direction alone moves no further than it must
        one.add(0, 100, 1, 40);
        QCOMPARE(one.align(2).correction, (std::vector<Nanos>{0, 60}));
        QCOMPARE(one.align(2).error, Nanos{-1});
        ClockBounds drift;
        drift.add(0, 100, 1, 40);
        drift.add(1, 100, 0, 90);
        QCOMPARE(drift.align(2).contradiction, Nanos{70});
        QCOMPARE(ClockBounds().align(0).correction.size(), std::size_t{0});
    }

    void gpuRanksBecomeOneRun()
    {
        const ImportResult result = imported({dataFile("gpu_rank4.json"), dataFile("gpu_rank6.json")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        const Timeline& timeline = *one.run.timeline;
        QCOMPARE(one.recognised, std::string("1f1b"));
        QCOMPARE(timeline.steps(), 2);
        QCOMPARE(one.messages, std::int64_t{8});
        QCOMPARE(one.unpaired, std::int64_t{0});
        QCOMPARE(one.collectives, std::int64_t{2});
        QVERIFY(notesSay(one, "counts its own ranks"));
        QVERIFY(notesSay(one, "ranks 4, 6 of the job"));
        QVERIFY(one.clockError > 0 && one.clockError < 100'000);
        // ops are where their kernels ran; every kernel of an op has it, and a Launch edge
        const Track* compute = timeline.trackOf(0, Lane::Compute);
        const Span& first = timeline.spansOf(*compute)[0];
        QCOMPARE(toText(first.op), std::string("0F0"));
        QCOMPARE(first.duration(), Nanos{90'000});
        std::size_t launched = 0;
        for (const Track& track : timeline.tracks()) {
            if (track.lane != Lane::Kernel && track.lane != Lane::Copy) continue;
            for (SpanId id = track.begin; id < track.end; ++id) {
                const Span& span = timeline.spans()[id];
                if (timeline.nameOf(span) != "gemm" && timeline.nameOf(span) != "Memcpy HtoD") continue;
                const auto edges = timeline.edgesInto(id);
                QCOMPARE(edges.size(), std::size_t{1});
                QVERIFY(edges[0].kind == EdgeKind::Launch);
                QVERIFY(timeline.spans()[edges[0].from].op == span.op);
                QVERIFY(isCompute(span.op.kind));
                ++launched;
            }
        }
        QCOMPARE(launched, std::size_t{32});
        // messages with both sides, and what they carry
        QCOMPARE(countLane(timeline, Lane::Send), std::size_t{8});
        QCOMPARE(toText(timeline.spansOf(*timeline.trackOf(1, Lane::Receive))[0].op), std::string("1RECV_F0"));
        QCOMPARE(countEdges(timeline, EdgeKind::Order), std::size_t{8});
        const auto gaps = analyseBubbles(timeline, 0);
        QVERIFY(gaps);
        // a forward's memory is held until its backward; what was there before counts as weights
        std::array<Bytes, memoryCategoryCount> sum{}, peak{};
        for (const MemoryEvent& event : timeline.memoryOf(0)) {
            const auto c = static_cast<std::size_t>(event.category);
            sum[c] += event.delta;
            peak[c] = std::max(peak[c], sum[c]);
        }
        QCOMPARE(peak[static_cast<std::size_t>(MemoryCategory::Activations)], Bytes{8192});
        QCOMPARE(sum[static_cast<std::size_t>(MemoryCategory::Activations)], Bytes{0});
        QCOMPARE(sum[static_cast<std::size_t>(MemoryCategory::Weights)], Bytes{4000});
        QCOMPARE(sum[static_cast<std::size_t>(MemoryCategory::Gradients)], Bytes{512});
        // a run like any other: stored, read, fitted
        QTemporaryDir folder;
        auto file = RunFile::open(folder.filePath("t.stagewright").toStdString(), OpenMode::Create);
        QVERIFY(file);
        const auto id = (*file)->add(one.run);
        QVERIFY(id);
        const auto back = (*file)->read(*id);
        QVERIFY(back && back->schedule && back->costs);
        QCOMPARE(back->timeline->spans().size(), timeline.spans().size());
        QCOMPARE(back->timeline->edges().size(), timeline.edges().size());
        QVERIFY(back->info.provenance == Provenance::Imported);
        QVERIFY(residualsOf(*back, *back->costs));
    }

    void otherLetters()
    {
        const ImportResult old = imported({dataFile("old_rank0.json")});
        QCOMPARE(old.runs.size(), std::size_t{1});
        QCOMPARE(old.runs[0].recognised, std::string("gpipe"));
        QCOMPARE(old.runs[0].kernels, std::int64_t{4});
        QCOMPARE(old.runs[0].dialect, std::string(toText(LabelDialect::PassNames)));
        const ImportResult zbv = imported({dataFile("zbv_rank0.json"), dataFile("zbv_rank1.json")});
        QCOMPARE(zbv.runs.size(), std::size_t{1});
        QVERIFY(zbv.runs[0].run.schedule);
        QVERIFY(zbv.runs[0].run.schedule->placement == Placement::vShape(2));
        QVERIFY(zbv.runs[0].run.schedule->splitsBackward());
    }

    // Runtime calls were not traced: kernels are under the op whose operator has their External id.
    void kernelsWithoutLaunches()
    {
        const auto trace = [](const char* operators, const char* kernel) {
            std::string text = "{'schemaVersion':1,'traceEvents':[";
            for (int mb = 0; mb < 2; ++mb) {
                const auto op = [&](const char* kind, int ts, int id) {
                    text += "{'ph':'X','cat':'user_annotation','name':'PP:0" + std::string(kind) + std::to_string(mb) + "','pid':1,'tid':1,'ts':" + std::to_string(ts) + ",'dur':90},";
                    const auto filled = [&](std::string part) {
                        for (const auto& [key, value] : {std::pair("ID", id), std::pair("HOST", ts + 10), std::pair("DEVICE", ts + 1000)})
                            for (std::size_t at = part.find(key); at != std::string::npos; at = part.find(key)) part.replace(at, std::strlen(key), std::to_string(value));
                        return part;
                    };
                    text += filled(operators) + "," + filled(kernel) + ",";
                };
                op("F", 100 + mb * 100, 11 + mb);
                op("B", 500 + mb * 100, 21 + mb);
            }
            return quoted(text + "{'ph':'i','name':'end','ts':9000}]}");
        };
        const char* byId = "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':HOST,'dur':5,'args':{'External id':ID}}";
        const char* kernel = "{'ph':'X','cat':'kernel','name':'gemm','pid':0,'tid':7,'ts':DEVICE,'dur':50,'args':{'stream':7,'correlation':ID0,'External id':ID}}";
        const char* noIds = "{'ph':'X','cat':'Kernel','name':'gemm','pid':0,'tid':7,'ts':DEVICE,'dur':50,'args':{}}";
        const char* byFlow = "{'ph':'s','cat':'async','name':'launch','id':ID,'pid':1,'tid':1,'ts':HOST},{'ph':'f','cat':'async','name':'launch','id':ID,'pid':0,'tid':7,'ts':DEVICE,'bp':'e'}";
        for (const std::string& text : {trace(byId, kernel), trace(byFlow, noIds)}) {
            const ImportResult result = importedText(text);
            QCOMPARE(result.runs.size(), std::size_t{1});
            const ImportedRun& one = result.runs[0];
            QCOMPARE(one.kernels, std::int64_t{4});
            QCOMPARE(one.kernelsUnderOps, std::int64_t{4});
            QVERIFY(notesSay(one, "4 of 4 kernels and copies have no record of their launch: 4 are tied"));
            QCOMPARE(countEdges(*one.run.timeline, EdgeKind::Launch), std::size_t{4});
            QCOMPARE(one.run.timeline->spansOf(*one.run.timeline->trackOf(0, Lane::Compute))[0].duration(), Nanos{50'000});
        }
        const ImportResult none = importedText(trace(byFlow, kernel)); // ids that nothing has
        QCOMPARE(none.runs[0].kernelsUnderOps, std::int64_t{0});
        QVERIFY(notesSay(none.runs[0], "0 are tied"));
    }

    void oldAndOddFormats()
    {
        // AMD: hip calls, RCCL, copies by other names
        const ImportResult rocm = importedText(quoted("{'schemaVersion':1,'deviceProperties':[{'id':0,'name':'AMD Instinct MI300X'}],'traceEvents':["
            "{'ph':'X','cat':'user_annotation','name':'PP:0F0','pid':1,'tid':1,'ts':100,'dur':90},"
            "{'ph':'X','cat':'user_annotation','name':'PP:0B0','pid':1,'tid':1,'ts':300,'dur':90},"
            "{'ph':'X','cat':'hip_runtime','name':'hipLaunchKernel','pid':1,'tid':1,'ts':110,'dur':2,'args':{'correlation':1}},"
            "{'ph':'X','cat':'cuda_runtime','name':'hipModuleLaunchKernel','pid':1,'tid':1,'ts':310,'dur':2,'args':{'correlation':2}},"
            "{'ph':'X','cat':'cuda_runtime','name':'hipMemcpyAsync','pid':1,'tid':1,'ts':320,'dur':2,'args':{'correlation':3}},"
            "{'ph':'X','cat':'kernel','name':'Cijk_Alik_Bljk','pid':2,'tid':0,'ts':400,'dur':20,'args':{'correlation':1}},"
            "{'ph':'X','cat':'kernel','name':'ncclDevKernel_Generic(x)','pid':2,'tid':0,'ts':430,'dur':20,'args':{'correlation':2}},"
            "{'ph':'X','cat':'gpu_memcpy','name':'CopyHostToDevice','pid':2,'tid':0,'ts':460,'dur':5,'args':{'correlation':3}}]}"));
        QCOMPARE(rocm.runs.size(), std::size_t{1});
        QCOMPARE(rocm.runs[0].kernels, std::int64_t{3});
        QCOMPARE(rocm.runs[0].kernelsUnderOps, std::int64_t{3});
        QVERIFY(rocm.runs[0].run.schedule);
        // no GPU: ops are where the host ran them
        const ImportResult cpu = importedText(quoted("{'schemaVersion':1,'traceEvents':[{'ph':'X','cat':'user_annotation','name':'PP:0F0','pid':1,'tid':1,'ts':100,'dur':90},"
            "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':110,'dur':9},{'ph':'X','cat':'user_annotation','name':'PP:0B0','pid':1,'tid':1,'ts':300,'dur':90}]}"));
        QCOMPARE(cpu.runs[0].kernels, std::int64_t{0});
        QCOMPARE(cpu.runs[0].ops, std::int64_t{2});
        QCOMPARE(countLane(*cpu.runs[0].run.timeline, Lane::Kernel), std::size_t{0});
        QVERIFY(cpu.runs[0].run.schedule);
        // PyTorch before Kineto: no categories, two processes that are one rank
        const ImportResult autograd = importedText(quoted("[{'name':'Forward 0','ph':'X','ts':100,'dur':50,'tid':1,'pid':'CPU functions','args':{}},"
            "{'name':'Backward 0','ph':'X','ts':200,'dur':50,'tid':1,'pid':'CPU functions','args':{}},"
            "{'name':'gemm','ph':'X','ts':300,'dur':40,'tid':0,'pid':'CUDA functions','args':{}},"
            "{'name':'gemm','ph':'s','ts':110,'tid':1,'pid':'CPU functions','id':1,'cat':'cpu_to_cuda','args':{}},"
            "{'name':'gemm','ph':'f','ts':300,'tid':0,'pid':'CUDA functions','id':1,'cat':'cpu_to_cuda','args':{}}]"));
        QCOMPARE(autograd.runs.size(), std::size_t{1});
        QCOMPARE(autograd.runs[0].run.info.ranks, 1);
        QCOMPARE(autograd.runs[0].ops, std::int64_t{2});
        QCOMPARE(autograd.runs[0].kernelsUnderOps, std::int64_t{1});
        // what is no trace is refused with a sentence
        for (const auto& [text, what] : {std::pair("{'nodes':[{'name':'aten::mm'}],'schema':'1.0.2'}", "there are no traceEvents"), std::pair("{'traceEvents':[]}", "no events"),
                                         std::pair("[1,2,3]", "no event that can be read"), std::pair("{'traceEvents':{'a':1}}", "there are no traceEvents")}) {
            QTemporaryDir folder;
            const std::string path = folder.filePath("odd.json").toStdString();
            std::ofstream(path) << quoted(text);
            const auto refused = importTraces({path}, {});
            QVERIFY2(!refused && refused.error().message.find(what) != std::string::npos, refused ? text : refused.error().message.c_str());
        }
    }

    void chromeJsonIsLanes()
    {
        const ImportResult plain = imported({dataFile("chrome.json")});
        QCOMPARE(plain.runs.size(), std::size_t{1});
        const Timeline& timeline = *plain.runs[0].run.timeline;
        QCOMPARE(timeline.ranks(), 2);
        QVERIFY(!plain.runs[0].run.schedule);
        QCOMPARE(countLane(timeline, Lane::Other), std::size_t{8});
        QCOMPARE(countLane(timeline, Lane::Compute), std::size_t{0});
        QCOMPARE(timeline.counters().size(), std::size_t{2});
        QCOMPARE(plain.runs[0].leftOut.front().second, std::int64_t{2}); // ends without a begin
        ImportOptions options;
        options.rules = *LabelRules::parse("F F m{microbatch}\nB B m{microbatch}\n");
        const ImportResult ops = imported({dataFile("chrome.json")}, options);
        QVERIFY(ops.runs[0].run.schedule);
        QCOMPARE(ops.runs[0].run.schedule->stages, 2);
    }

    void nsightExports()
    {
        const ImportResult result = imported({dataFile("nsight.sqlite")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        QCOMPARE(one.run.info.ranks, 2);
        QCOMPARE(one.ops, std::int64_t{4});
        QCOMPARE(one.kernels, std::int64_t{10});
        QCOMPARE(one.kernelsUnderOps, std::int64_t{8});
        QCOMPARE(one.damaged, std::int64_t{2});
        QVERIFY(one.run.schedule);
        QCOMPARE(one.run.timeline->spansOf(*one.run.timeline->trackOf(0, Lane::Compute))[0].duration(), Nanos{200});
        QVERIFY(one.run.timeline->hasMemory());
    }

    // Two nodes export a file each; the clock of one is 4 ms ahead.
    void nsightNodesAreOneJob()
    {
        const ImportResult result = imported({dataFile("nsight_node1.sqlite"), dataFile("nsight_node0.sqlite"), dataFile("nsight.sqlite")});
        QCOMPARE(result.runs.size(), std::size_t{2});
        const ImportedRun& one = result.runs[1];
        QCOMPARE(one.run.info.name, std::string("nsight_node"));
        QCOMPARE(one.files.size(), std::size_t{4});
        QCOMPARE(one.run.info.ranks, 4);
        QCOMPARE(one.recognised, std::string("gpipe"));
        QCOMPARE(one.kernelsUnderOps, std::int64_t{16});
        QCOMPARE(one.collectives, std::int64_t{6});
        QVERIFY2(one.clocks.starts_with("2 of 4 ranks moved, at most 4.0"), one.clocks.c_str());
        QVERIFY(one.clockError > 0 && one.clockError <= 60'000);
        // by themselves they are not; whoever says so makes one of them
        QCOMPARE(imported({dataFile("nsight_node1.sqlite")}).runs[0].run.info.ranks, 2);
        ImportOptions together;
        together.oneJob = true;
        const ImportResult all = imported({dataFile("nsight_node0.sqlite"), dataFile("nsight.sqlite")}, together);
        QCOMPARE(all.runs.size(), std::size_t{2}); // both have stages 0 and 1: copies of one pipeline
        QCOMPARE(all.runs[0].run.info.ranks + all.runs[1].run.info.ranks, 4);
    }

    void exportsHeldTogetherAreOneJob()
    {
        using Groups = std::vector<std::vector<std::size_t>>;
        QCOMPARE(groupsOfExports({{"d/node10.sqlite", 100, 200}, {"d/node2.sqlite", 120, 210}}), (Groups{{1, 0}}));
        QCOMPARE(groupsOfExports({{"d/report1.sqlite", 100, 200}, {"d/report2.sqlite", 300, 400}}), (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"d/before.sqlite", 100, 200}, {"d/after.sqlite", 100, 200}}), (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"n0/a.sqlite", 100, 200}, {"n1/a.sqlite", 100, 200}, {"n1/b.sqlite", 100, 200}}), (Groups{{0, 1}, {2}}));
        QCOMPARE(groupsOfExports({{"d/rank0.sqlite", 0, -1}, {"d/rank1.sqlite", 0, -1}}), (Groups{{0, 1}}));
        QCOMPARE(groupsOfExports({{"d/x0.sqlite", 0, -1}, {"d/x1.sqlite", 0, -1}}), (Groups{{0}, {1}}));
        QVERIFY(naturalLess("node2", "node10") && !naturalLess("node10", "node2") && naturalLess("a", "ab") && !naturalLess("a", "a"));
        QVERIFY(naturalLess("n01", "n2") && naturalLess("n1", "n01") != naturalLess("n01", "n1"));
    }

    void filesAreReadInParallel()
    {
        QTemporaryDir folder;
        std::vector<std::string> files;
        std::int64_t bytes = 0;
        for (int rank = 0; rank < 6; ++rank) {
            std::string text = quoted("{'schemaVersion':1,'distributedInfo':{'rank':" + std::to_string(rank) + ",'world_size':6},'traceEvents':[");
            for (int i = 0; i < 4000; ++i) text += quoted("{'ph':'X','cat':'user_annotation','name':'r" + std::to_string(rank) + "','pid':1,'tid':" + std::to_string(i % 3) + ",'ts':" + std::to_string(i * 10) + ",'dur':5},");
            text += quoted("{'ph':'i','name':'end','ts':1}]}");
            files.push_back(folder.filePath(QString("job_rank%1.json").arg(rank)).toStdString());
            std::ofstream(files.back(), std::ios::binary) << text;
            bytes += static_cast<std::int64_t>(text.size());
        }
        ImportOptions options;
        options.threads = 4;
        Progress progress;
        std::int64_t last = 0;
        bool rises = true;
        progress.report = [&](std::string_view what, std::int64_t done, std::int64_t total) {
            if (what != "bytes") return;
            rises = rises && done >= last && total == bytes;
            last = done;
        };
        const auto result = importTraces(files, options, progress);
        QVERIFY(result);
        QCOMPARE(result->runs.size(), std::size_t{1});
        QCOMPARE(result->runs[0].run.info.ranks, 6);
        QCOMPARE(result->runs[0].run.timeline->spans().size(), std::size_t{6 * 4000});
        QVERIFY(rises);
        QCOMPARE(last, bytes);
        // a stop while files are read, from the reading itself
        std::stop_source stop;
        progress.stop = stop.get_token();
        progress.report = [&](std::string_view, std::int64_t, std::int64_t) { stop.request_stop(); };
        const auto stopped = importTraces(files, options, progress);
        QVERIFY(!stopped);
        QCOMPARE(stopped.error().code, ErrorCode::Cancelled);
    }

    void cancelling()
    {
        std::stop_source stop;
        stop.request_stop();
        Progress progress;
        progress.stop = stop.get_token();
        const auto result = importTraces({dataFile("gpu_rank4.json")}, {}, progress);
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::Cancelled);
    }

    void recordedPipelines()
    {
        const fs::path folder = sharedFolder("kineto") / "torch26_gloo_pp4";
        if (!fs::exists(folder)) QSKIP("PyTorch's traces are not there (set STAGEWRIGHT_SHARED)");
        const ImportResult result = imported({folder.string()});
        QCOMPARE(result.runs.size(), std::size_t{3});
        const std::array<const char*, 3> files{"1F1B_p4_m8_v1.csv", "GPipe_p4_m8_v1.csv", "Interleaved1F1B_p4_m8_v2.csv"};
        for (std::size_t i = 0; i < 3; ++i) {
            const ImportedRun& one = result.runs[i];
            const auto written = readScheduleCsv(textOf(sharedFolder("torch_csv") / files[i]));
            QVERIFY(written);
            QVERIFY2(one.run.schedule && *one.run.schedule == *written, files[i]);
            QCOMPARE(one.files.size(), std::size_t{4});
            QCOMPARE(one.run.timeline->steps(), 2);
            for (int step = 0; step < 2; ++step) QVERIFY(scheduleOf(*one.run.timeline, step)->order == written->order);
            QCOMPARE(one.unpaired, std::int64_t{0});
            QCOMPARE(one.damaged, std::int64_t{0});
            QVERIFY(one.clockError >= 0);
            // one message for each input from another rank, in both steps
            std::size_t sends = 0;
            const auto lowered = lower(*written, {});
            QVERIFY(lowered);
            for (const auto& row : lowered->order)
                for (const Op& op : row) sends += isSend(op.kind) ? 1 : 0;
            QCOMPARE(static_cast<std::size_t>(one.messages), 2 * sends);
            QCOMPARE(countEdges(*one.run.timeline, EdgeKind::Order), 2 * sends);
            QVERIFY(residualsOf(one.run, *one.run.costs));
        }
    }

    void recordedGpuRanks()
    {
        const fs::path folder = sharedFolder("kineto") / "dlrm_8rank";
        if (!fs::exists(folder)) QSKIP("the GPU traces are not there (set STAGEWRIGHT_SHARED)");
        const ImportResult result = imported({(folder / "*.gz").string()});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        QCOMPARE(one.run.info.ranks, 8);
        QCOMPARE(one.collectives, std::int64_t{8}); // five exchanges, three reductions, each of all ranks
        QCOMPARE(countEdges(*one.run.timeline, EdgeKind::Transfer), std::size_t{8 * 7});
        QVERIFY(!one.run.schedule);
        QVERIFY(one.kernelsUnderRanges > one.kernels / 2);
    }

    void recordedNsight()
    {
        const fs::path folder = sharedFolder("nsys_sqlite");
        if (!fs::exists(folder)) QSKIP("the Nsight exports are not there (set STAGEWRIGHT_SHARED)");
        for (const char* name : {"mfu_2gpu_before.sqlite", "mfu_2gpu_after.sqlite"}) {
            const ImportResult result = imported({(folder / name).string()});
            QCOMPARE(result.runs.size(), std::size_t{1});
            QCOMPARE(result.runs[0].run.info.ranks, 2);
            QVERIFY(result.runs[0].kernelsUnderRanges * 100 > result.runs[0].kernels * 99);
            QVERIFY(result.runs[0].collectives > 30);
            QVERIFY(countEdges(*result.runs[0].run.timeline, EdgeKind::Launch) > 4'000);
        }
        const ImportResult mock = imported({(folder / "mock.sqlite").string()});
        QCOMPARE(mock.runs.size(), std::size_t{1});
        QCOMPARE(mock.runs[0].kernels, std::int64_t{3});
        QVERIFY(notesSay(mock.runs[0], "no NVTX"));
    }

    void schedulesOfPyTorch()
    {
        const fs::path folder = sharedFolder("torch_csv");
        if (!fs::exists(folder)) QSKIP("PyTorch's CSV files are not there (set STAGEWRIGHT_SHARED)");
        int seen = 0;
        for (const auto& entry : fs::recursive_directory_iterator(folder)) {
            if (entry.path().extension() != ".csv") continue;
            const ImportResult result = imported({entry.path().string()});
            QVERIFY2(result.runs.size() == 1, entry.path().c_str());
            const auto given = readScheduleCsv(textOf(entry.path()));
            QVERIFY(given && *result.runs[0].run.schedule == *given);
            const auto written = writeScheduleCsv(*result.runs[0].run.schedule);
            QVERIFY(written && *readScheduleCsv(*written) == *given);
            ++seen;
        }
        QVERIFY(seen > 70);
    }
};

QTEST_APPLESS_MAIN(TestImport)
#include "tst_import.moc"
