// Traces of other tools: what is read of them, joined, and made runs of. The recorded ones (STAGEWRIGHT_SHARED) skip where absent.
#include <QtTest/QtTest>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "schedules/csv.h"
#include "schedules/kinds.h"
#include "schedules/lower.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/bubbles.h"
#include "traces/fit/residuals.h"
#include "traces/formats/kineto_event.h"
#include "traces/formats/kineto_json.h"
#include "traces/import/clock_alignment.h"
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

std::vector<std::string> eventsOf(const std::string& text, std::string* lastMember = nullptr, std::int64_t* damaged = nullptr)
{
    const auto source = byteSourceOf(text);
    JsonEvents events(*source);
    JsonEvents::Item item;
    std::vector<std::string> out;
    while (true) {
        const auto more = events.next(item);
        if (!more || !*more) break;
        if (!item.member) out.emplace_back(item.text);
        else if (lastMember != nullptr) *lastMember = item.key;
    }
    if (damaged != nullptr) *damaged = events.damaged();
    return out;
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
