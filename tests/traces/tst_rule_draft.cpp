// Rules drafted from names of ranges: what is suggested, what the preview says, and that an import with the draft gives
// the same schedule.
#include <QtTest/QtTest>

#include <fstream>
#include <functional>
#include <random>

#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "tests/traces/import_rig.h"
#include "traces/import/rule_draft.h"
#include "traces/import/timeline_ranges.h"
#include "traces/run/simulated_run.h"

using namespace stagewright;
using namespace stagewright::import_rig;

namespace {

using Naming = std::function<std::string(OpKind kind, int stage, int microbatch, int rank)>;

// Kineto files of a simulated schedule, several steps one after the other, with ranges named by `name`; layers within
// each forward.
std::vector<std::string> writeTraces(const QTemporaryDir& folder, const char* schedule, const Shape& shape, int steps,
                                     const Naming& name, const std::string& optimizer)
{
    const auto made = makeSchedule(schedule, shape);
    if (!made) qFatal("%s", made.error().message.c_str());
    const auto run = simulatedRun(*made, CostModel::uniform(*made));
    if (!run) qFatal("%s", run.error().message.c_str());
    const Timeline& timeline = *run->timeline;
    const Nanos length = timeline.end() - timeline.begin() + 20'000'000;
    std::vector<std::string> files;
    for (int rank = 0; rank < timeline.ranks(); ++rank) {
        std::string text = "{'schemaVersion':1,'distributedInfo':{'rank':" + std::to_string(rank) +
                           ",'world_size':" + std::to_string(timeline.ranks()) + "},'traceEvents':[";
        const auto add = [&text](const std::string& label, Nanos start, Nanos end) {
            text += "{'ph':'X','cat':'user_annotation','name':'" + label +
                    "','pid':1,'tid':1,'ts':" + std::to_string(1000 + start / 1000) +
                    ",'dur':" + std::to_string((end - start) / 1000) + "},";
        };
        for (int step = 0; step < steps; ++step) {
            for (const Span& span : timeline.spansOf(*timeline.trackOf(rank, Lane::Compute))) {
                const Nanos start = span.start + step * length;
                const Nanos end = span.end + step * length;
                add(name(span.op.kind, span.op.stage, span.op.microbatch, rank), start, end);
                if (span.op.kind == OpKind::Forward)
                    for (int layer = 0; layer < 2; ++layer)
                        add("layer " + std::to_string(layer) + " forward", start + 1'000'000 + layer * 2'000'000,
                            start + 2'000'000 + layer * 2'000'000);
            }
            if (optimizer == "marks")
                add("ProfilerStep#" + std::to_string(step), step * length, (step + 1) * length - 1'000'000);
            else if (!optimizer.empty())
                add(optimizer, timeline.end() + step * length, timeline.end() + step * length + 5'000'000);
        }
        text += "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':1001,'dur':1}]}";
        files.push_back(folder.filePath("rank%1.json").arg(rank).toStdString());
        std::ofstream(files.back(), std::ios::binary) << quoted(text);
    }
    return files;
}

std::string word(OpKind kind, const char* forward, const char* backward, const char* input = "",
                 const char* weight = "")
{
    switch (kind) {
    case OpKind::Forward: return forward;
    case OpKind::Backward: return backward;
    case OpKind::InputGrad: return input;
    case OpKind::WeightGrad: return weight;
    default: return "other";
    }
}

} // namespace

class TestRuleDraft : public QObject {
    Q_OBJECT

private slots:
    void patterns()
    {
        std::vector<ForeignRank> ranks(2);
        const auto add = [&](std::size_t rank, const char* name) {
            ranks[rank].annotations.push_back({0, 10, ranks[rank].names.idOf(name), 0});
        };
        for (int mb = 0; mb < 3; ++mb)
            for (std::size_t rank = 0; rank < 2; ++rank) {
                add(rank, ("Fwd[" + std::to_string(mb) + "] stage=" + std::to_string(rank) + ", op_id = 91" +
                           std::to_string(mb))
                              .c_str());
                add(rank, ("a*b{" + std::to_string(mb + 1) + "}").c_str());
            }
        add(0, "AddmmBackward0");
        add(0, "nccl:all_reduce forward");
        const auto found = namePatterns(ranks);
        QCOMPARE(found.size(), std::size_t{4});
        QCOMPARE(patternText(found[0].pieces), std::string("Fwd[{microbatch}] stage={stage}"));
        QCOMPARE(found[0].kind, std::string("F"));
        QCOMPARE(found[0].ranges, std::int64_t{6});
        QCOMPARE(found[0].ranks, 2);
        QCOMPARE(patternText(found[1].pieces), std::string("a\\*b\\{{microbatch-1}}"));
        for (std::size_t i = 1; i < found.size(); ++i) QVERIFY2(found[i].kind.empty(), found[i].example.c_str());
        // every name is one that its pattern matches
        for (const NamePattern& pattern : found) {
            const auto rules = LabelRules::parse("ignore " + patternText(pattern.pieces));
            QVERIFY(rules);
            const auto meaning = rules->meaningOf(pattern.example);
            QVERIFY2(meaning && meaning->what == LabelMeaning::What::Ignore, pattern.example.c_str());
        }
    }

    void drafts_data()
    {
        QTest::addColumn<QString>("schedule");
        QTest::addColumn<int>("chunks");
        QTest::addColumn<int>("style");
        QTest::addColumn<bool>("optimizer");
        const char* names[] = {"words", "counted", "bare numbers", "rank in the name", "from one"};
        for (int style = 0; style < 5; ++style)
            for (const char* schedule : {"gpipe", "1f1b"})
                QTest::addRow("%s, %s", schedule, names[style]) << schedule << 1 << style << true;
        QTest::newRow("1f1b, counted, steps marked") << "1f1b" << 1 << 7 << false;
        QTest::newRow("zb-h1, input and weight") << "zb-h1" << 1 << 5 << true;
        QTest::newRow("interleaved, chunks") << "interleaved-1f1b" << 2 << 6 << false;
    }
    void drafts()
    {
        QFETCH(QString, schedule);
        QFETCH(int, chunks);
        QFETCH(int, style);
        QFETCH(bool, optimizer);
        const Naming name = [style](OpKind kind, int stage, int mb, int rank) -> std::string {
            switch (style) {
            case 0: return word(kind, "fwd", "bwd") + " stage " + std::to_string(stage) + " mb " + std::to_string(mb);
            case 1:
            case 7: return word(kind, "## forward ##", "## backward ##");
            case 2: return word(kind, "fprop ", "bprop ") + std::to_string(mb);
            case 3:
                return word(kind, "Forward", "Backward") + "Pass(micro_batch=" + std::to_string(mb) +
                       ", rank=" + std::to_string(rank) + ")";
            case 4:
                return word(kind, "fwd", "bwd") + "_batch" + std::to_string(mb + 1) + "_stage" +
                       std::to_string(stage + 1);
            case 5: return word(kind, "forward", "backward", "input grad", "weight grad") + " mb" + std::to_string(mb);
            default:
                return word(kind, "fwd", "bwd") + " chunk " + std::to_string(stage / 4) + " mb " + std::to_string(mb);
            }
        };
        Shape shape;
        shape.ranks = 4;
        shape.microbatches = 8;
        shape.chunks = chunks;
        QTemporaryDir folder;
        const auto files = writeTraces(folder, schedule.toUtf8().constData(), shape, 2, name,
                                       optimizer    ? "## optimizer ##"
                                       : style == 7 ? "marks"
                                                    : "");
        ImportOptions options;
        options.suggestRules = true;
        const ImportResult plain = imported(files, options);
        QCOMPARE(plain.runs.size(), std::size_t{1});
        const ImportedRun& without = plain.runs[0];
        QCOMPARE(without.ops, std::int64_t{0});
        QVERIFY(without.rangeNames && without.rangeNames->draft);
        const RuleDraft& draft = *without.rangeNames->draft;
        QVERIFY2(draft.preview.whole(), (toText(draft.preview) + "\n" + draft.text).c_str());
        QVERIFY2(draft.preview.rebuilt.recognised == schedule.toStdString(),
                 (toText(draft.preview) + "\n" + draft.text).c_str());
        QCOMPARE(draft.preview.steps, 2);
        QCOMPARE(draft.preview.rebuilt.schedule->microbatches, 8);
        // the import with it is what the preview promised
        auto rules = LabelRules::parse(draft.text);
        QVERIFY(rules);
        ImportOptions with;
        with.rules = std::move(*rules);
        const ImportResult mapped = imported(files, with);
        QCOMPARE(mapped.runs.size(), std::size_t{1});
        QCOMPARE(mapped.runs[0].recognised, schedule.toStdString());
        QCOMPARE(mapped.runs[0].run.timeline->steps(), 2);
        QVERIFY(*mapped.runs[0].run.schedule == *draft.preview.rebuilt.schedule);
        // the window's mapper sees only the timeline
        const TimelineRanges ranges = rangesOf(*without.run.timeline);
        const auto preview = previewRules(ranges.ranks, draft.text, ranges.messages);
        QVERIFY(preview);
        QCOMPARE(preview->orphans, std::int64_t{0});
        QVERIFY(preview->rebuilt.schedule && *preview->rebuilt.schedule == *draft.preview.rebuilt.schedule);
        QCOMPARE(preview->rules.size(), draft.preview.rules.size());
        for (std::size_t i = 0; i < preview->rules.size(); ++i) {
            QCOMPARE(preview->rules[i].ranges, draft.preview.rules[i].ranges);
            QCOMPARE(preview->rules[i].ranks, 4);
        }
    }

    // Live counts, orphans and wrong lines.
    void previews()
    {
        QTemporaryDir folder;
        Shape shape;
        shape.ranks = 2;
        shape.microbatches = 4;
        const auto files = writeTraces(
            folder, "1f1b", shape, 1,
            [](OpKind kind, int stage, int mb, int) {
                return word(kind, "go", "back") + " " + std::to_string(stage) + "/" + std::to_string(mb);
            },
            "");
        const ImportResult result = imported(files);
        const TimelineRanges ranges = rangesOf(*result.runs.at(0).run.timeline);
        auto preview = previewRules(ranges.ranks, "# both\nF go {stage}/{microbatch}\nB back {stage}/{microbatch}\n",
                                    ranges.messages);
        QVERIFY(preview && preview->whole());
        QCOMPARE(preview->matched, std::int64_t{16});
        QCOMPARE(preview->rules.at(0).line, 2);
        QCOMPARE(preview->rules.at(0).ranges, std::int64_t{8});
        QCOMPARE(preview->rules.at(0).ranks, 2);
        QCOMPARE(toText(*preview), std::string("1f1b on 2 ranks: 2 stages, 4 microbatches, 1 step"));
        preview = previewRules(ranges.ranks, "F go {stage}/{microbatch}\nB back {stage}/3\n", ranges.messages);
        QVERIFY(preview && !preview->whole());
        QVERIFY(preview->orphans > 0);
        QVERIFY(!preview->rebuilt.schedule && !preview->rebuilt.why.empty());
        preview = previewRules(ranges.ranks, "F nothing {microbatch}\n", ranges.messages);
        QVERIFY(preview);
        QCOMPARE(preview->matched, std::int64_t{0});
        QCOMPARE(toText(*preview), std::string("no schedule: no range matches a rule of an op"));
        preview = previewRules(ranges.ranks, "F ok\nX {stage}", ranges.messages);
        QVERIFY(!preview);
        QVERIFY(preview.error().message.find("line 2") != std::string::npos);
        // nothing looks like a pass: the hint says what is there
        QVERIFY(result.runs[0].rangeNames);
        QVERIFY(!result.runs[0].rangeNames->draft);
        QVERIFY2(namesText(result.runs[0].rangeNames->patterns).starts_with("layer 0 forward (16)"),
                 namesText(result.runs[0].rangeNames->patterns).c_str());
    }

    // Ranks that do the same at the same time are not stages of a pipeline.
    void copies()
    {
        QTemporaryDir folder;
        std::vector<std::string> files;
        for (int rank = 0; rank < 4; ++rank) {
            std::string text = "{'schemaVersion':1,'distributedInfo':{'rank':" + std::to_string(rank) +
                               ",'world_size':4},'traceEvents':[";
            for (int at = 0; at < 3; ++at)
                text += "{'ph':'X','cat':'user_annotation','name':'forward','pid':1,'tid':1,'ts':" +
                        std::to_string(1000 * at + rank) +
                        ",'dur':400},"
                        "{'ph':'X','cat':'user_annotation','name':'backward','pid':1,'tid':1,'ts':" +
                        std::to_string(1000 * at + 450 + rank) + ",'dur':400},";
            files.push_back(folder.filePath("rank%1.json").arg(rank).toStdString());
            std::ofstream(files.back(), std::ios::binary)
                << quoted(text + "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':1,'dur':1}]}");
        }
        ImportOptions options;
        options.rules = *LabelRules::parse("F forward\nB backward\n");
        const ImportResult result = imported(files, options);
        QCOMPARE(result.runs.size(), std::size_t{1});
        QCOMPARE(result.runs[0].ops, std::int64_t{24});
        QVERIFY(!result.runs[0].run.schedule);
        QVERIFY2(result.runs[0].notRebuilt.find("copies of a model") != std::string::npos,
                 result.runs[0].notRebuilt.c_str());
    }

    // Names of the frameworks for which rules are ready.
    void readyNames_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("meaning");
        QTest::newRow("deepspeed forward") << "PipelineEngine._exec_forward_pass"
                                           << "0F0";
        QTest::newRow("deepspeed backward") << "PipelineEngine._exec_backward_pass"
                                            << "0B0";
        QTest::newRow("deepspeed step") << "DeepSpeedEngine.step"
                                        << "0OPT";
        QTest::newRow("deepspeed module") << "deepspeed.runtime.engine.DeepSpeedEngine.forward"
                                          << "0F0";
        QTest::newRow("megatron nvtx") << "megatron.core.pipeline_parallel.schedules.forward_step"
                                       << "0F0";
        QTest::newRow("vllm") << "gpu_model_runner: forward"
                              << "0F0";
        QTest::newRow("vllm context") << "execute_context_1(15)_generation_2(2)"
                                      << "0F0";
        QTest::newRow("zero-bubble, older") << "W12"
                                            << "0W12";
    }
    void readyNames()
    {
        QFETCH(QString, name);
        QFETCH(QString, meaning);
        const auto found = LabelRules::builtIn().meaningOf(name.toStdString());
        QVERIFY(found && found->ops.size() == 1);
        QCOMPARE(QString::fromStdString(toText(found->ops[0])), meaning);
        for (std::size_t d = 1; d < labelDialectCount; ++d) // each is a file that can be read by itself
            QVERIFY(LabelRules::parse(readyRules(static_cast<LabelDialect>(d))));
    }

    // Any names and any rules: refused or drawn up, never a crash or a hang.
    void anyNames()
    {
        std::mt19937 random(7);
        const std::string letters = "fFbBwW0123456789 {}*\\#=[]/._-forward\n";
        for (int round = 0; round < 3'000; ++round) {
            std::vector<ForeignRank> ranks(1 + random() % 3);
            for (ForeignRank& rank : ranks)
                for (int i = 0; i < 20; ++i) {
                    std::string name;
                    for (std::size_t length = random() % 24; length > 0; --length)
                        name += letters[random() % letters.size()];
                    if (random() % 3 == 0)
                        name = (random() % 2 == 0 ? "forward " : "backward ") + std::to_string(random() % 4) +
                               name.substr(0, 2);
                    const auto start = static_cast<Nanos>(random() % 1000);
                    rank.annotations.push_back({start, start + static_cast<Nanos>(random() % 100),
                                                rank.names.idOf(name), static_cast<std::uint32_t>(random() % 2)});
                }
            const auto patterns = namePatterns(ranks);
            for (const NamePattern& pattern : patterns) {
                const std::string rule = "ignore " + patternText(pattern.pieces);
                const auto rules = LabelRules::parse(rule);
                QVERIFY2(rules, rule.c_str());
            }
            if (const auto draft = suggestRules(ranks, patterns, random() % 2 == 0))
                QVERIFY(LabelRules::parse(draft->text));
            std::string text;
            for (std::size_t length = random() % 60; length > 0; --length) text += letters[random() % letters.size()];
            if (const auto preview = previewRules(ranks, text, false); !preview)
                QVERIFY(!preview.error().message.empty());
        }
    }
};

QTEST_GUILESS_MAIN(TestRuleDraft)
#include "tst_rule_draft.moc"
