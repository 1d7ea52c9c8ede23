// The run file: law 3 (read(write(x)) == x), recording, other processes, damage, merging.
#include <QtTest/QtTest>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_folder.h"
#include "sample_runs.h"
#include "traces/analysis/memory.h"
#include "traces/store/run_file.h"

using namespace stagewright;
namespace fs = std::filesystem;

class TestRunFile : public QObject, RunFolder {
    Q_OBJECT

private:
    static Run header(const std::string& name)
    {
        Run run;
        run.info.name = name;
        run.metrics = {{"loss", "nats", {}}};
        return run;
    }

private slots:
    void whatIsWrittenIsRead_data()
    {
        QTest::addColumn<std::uint32_t>("seed");
        for (std::uint32_t seed = 0; seed < 16; ++seed) QTest::addRow("%u", seed) << seed;
    }

    void whatIsWrittenIsRead()
    {
        QFETCH(std::uint32_t, seed);
        const Run run = samples::randomRun(seed);
        const std::string path = freshPath();
        std::int64_t id = 0;
        {
            auto file = RunFile::open(path, OpenMode::Create);
            VERIFY_RESULT(file);
            auto added = (*file)->add(run);
            VERIFY_RESULT(added);
            id = *added;
        }
        auto file = RunFile::open(path, OpenMode::Read);
        VERIFY_RESULT(file);
        auto read = (*file)->read(id);
        VERIFY_RESULT(read);
        QCOMPARE(QString::fromStdString(samples::difference(run, *read)), QString());
        QCOMPARE(read->info.id, id);
    }

    void simulatedRunsAreReadBack()
    {
        auto file = fresh();
        for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1"}) {
            const Run run = samples::simulatedRun(name, 4, 8, 0.25);
            auto id = file->add(run);
            VERIFY_RESULT(id);
            auto read = file->read(*id);
            VERIFY_RESULT(read);
            QCOMPARE(QString::fromStdString(samples::difference(run, *read)), QString());
            QCOMPARE(read->timeline->schedule(), read->schedule); // stored once
        }
        QCOMPARE(file->runs()->size(), std::size_t{4});
    }

    void aRecordingIsTheSumOfItsSteps()
    {
        const std::string path = freshPath();
        auto file = RunFile::open(path, OpenMode::Create);
        VERIFY_RESULT(file);
        auto a = (*file)->begin(header("a"));
        auto b = (*file)->begin(header("b")); // two runs in turn
        VERIFY_RESULT(a);
        VERIFY_RESULT(b);
        TimelineBuilder builder(Provenance::Simulated, "", 2);
        std::shared_ptr<const Timeline> first;
        for (int step = 0; step < 3; ++step) {
            const auto timeline = samples::randomTimeline(7, 2, 1, 500, step);
            if (!first) {
                first = timeline;
                builder = TimelineBuilder(first->provenance(), first->clock(), 2);
                builder.setUnits(first->timeUnit(), first->memoryUnit());
            }
            // steps follow each other in time
            TimelineBuilder moved(first->provenance(), first->clock(), 2);
            moved.setUnits(first->timeUnit(), first->memoryUnit());
            for (const Track& track : timeline->tracks()) {
                const int number = moved.addTrack(track.rank, track.lane, track.name);
                for (Span span : timeline->spansOf(track)) {
                    span.start += step * 4'000'000'000;
                    span.end += step * 4'000'000'000;
                    span.label = 0;
                    moved.addSpan(number, span);
                }
            }
            const auto shifted = moved.build().value();
            builder.append(*shifted);
            VERIFY_RESULT((*a)->append(*shifted, {{"loss", 5.0 - step}, {"late", 1.0 * step}}));
            VERIFY_RESULT((*b)->append(*shifted, {{"loss", 4.0 - step}}));
        }
        QCOMPARE((*file)->runs()->front().state, RunState::Recording);
        VERIFY_RESULT((*a)->finish());
        QVERIFY(!(*a)->append(*first, {}).has_value());
        b->reset(); // without finish
        auto run = (*file)->read(1);
        VERIFY_RESULT(run);
        QCOMPARE(QString::fromStdString(samples::difference(*run->timeline, *builder.build().value())), QString());
        QCOMPARE(run->info.state, RunState::Complete);
        QCOMPARE(run->info.steps, 3);
        QCOMPARE(run->metric("loss")->unit, std::string("nats"));
        QCOMPARE(run->metric("loss")->values, (std::vector<double>{5, 4, 3}));
        QCOMPARE(run->metric("late")->values, (std::vector<double>{0, 1, 2}));
        QCOMPARE((*file)->runs()->back().state, RunState::Interrupted);
        QCOMPARE((*file)->read(2)->info.steps, 3);
        file->reset();
        for (const char* suffix : {"-wal", "-shm", "-lock", "-journal"}) QVERIFY2(!fs::exists(path + suffix), suffix);
        const std::string copy = freshPath();
        fs::copy_file(path, copy);
        QCOMPARE(RunFile::open(copy, OpenMode::Read).value()->read(1)->info.steps, 3);
    }

    void theNewestStepsAreReadAlone()
    {
        const std::string path = freshPath();
        auto file = RunFile::open(path, OpenMode::Create);
        VERIFY_RESULT(file);
        auto writer = (*file)->begin(header("growing"));
        VERIFY_RESULT(writer);
        const auto timeline = samples::simulated("zb-h1", 3, 6, 0.1);
        constexpr Nanos apart = 1'000'000'000;
        for (int step = 0; step < 4; ++step) {
            TimelineBuilder moved(timeline->provenance(), timeline->clock(), timeline->ranks());
            moved.setUnits(timeline->timeUnit(), timeline->memoryUnit());
            std::vector<SpanId> ids(timeline->spans().size(), noSpan);
            for (const Track& track : timeline->tracks()) {
                const int number = moved.addTrack(track.rank, track.lane, track.name);
                for (SpanId id = track.begin; id < track.end; ++id) {
                    Span span = timeline->spans()[id];
                    span.start += step * apart;
                    span.end += step * apart;
                    span.step = step;
                    span.label = 0;
                    ids[id] = moved.addSpan(number, span);
                }
            }
            for (const Edge& edge : timeline->edges())
                moved.addEdge(ids[edge.from], ids[edge.to], edge.kind, edge.arrival + step * apart);
            for (int rank = 0; rank < timeline->ranks(); ++rank) {
                if (step == 0) // weights stay from the first step on
                    moved.addMemory({0, 7000 + rank, -1, 0, static_cast<std::uint16_t>(rank),
                                     static_cast<std::uint16_t>(rank), MemoryCategory::Weights});
                for (MemoryEvent event : timeline->memoryOf(rank)) {
                    event.time += step * apart;
                    event.step = step;
                    moved.addMemory(event);
                }
            }
            VERIFY_RESULT((*writer)->append(*moved.build().value(), {{"loss", 5.0 - step}}));
        }
        const auto whole = (*file)->read(1);
        VERIFY_RESULT(whole);
        for (int first = 0; first < 4; ++first) {
            const auto part = (*file)->readSteps(1, first);
            VERIFY_RESULT(part);
            QCOMPARE(part->timeline->spans().size(), (4 - static_cast<std::size_t>(first)) * timeline->spans().size());
            QCOMPARE(part->timeline->edges().size(), (4 - static_cast<std::size_t>(first)) * timeline->edges().size());
            QCOMPARE(part->timeline->steps(), 4);
            QCOMPARE(part->info.damagedBlocks, 0);
            QCOMPARE(part->metric("loss")->values.size(), std::size_t{4});
            const auto spans = part->timeline->spans();
            QVERIFY(std::all_of(spans.begin(), spans.end(), [&](const Span& span) { return span.step >= first; }));
            for (const auto category : {MemoryCategory::Activations, MemoryCategory::Weights})
                QCOMPARE(peakByRank(*part->timeline, 3, category), peakByRank(*whole->timeline, 3, category));
            QCOMPARE(peakByRank(*part->timeline, 3, MemoryCategory::Weights).at(2), Bytes{7002});
        }
        const auto none = (*file)->readSteps(1, 9);
        VERIFY_RESULT(none);
        QVERIFY(none->timeline->spans().empty());
        for (int step = 0; step < 4; ++step) { // and one alone
            const auto one = (*file)->readStep(1, step);
            VERIFY_RESULT(one);
            QCOMPARE(one->timeline->spans().size(), timeline->spans().size());
            QCOMPARE(one->timeline->edges().size(), timeline->edges().size());
            QCOMPARE(one->timeline->steps(), step + 1);
            for (const auto category : {MemoryCategory::Activations, MemoryCategory::Weights})
                QCOMPARE(peakByRank(*one->timeline, step, category), peakByRank(*whole->timeline, step, category));
        }
    }

    void oneStepOfAWholeRunIsReadAlone() // one segment holds every step
    {
        Run run;
        for (std::uint32_t seed = 7; !run.timeline || run.timeline->steps() < 3; ++seed) run = samples::randomRun(seed);
        auto file = fresh();
        VERIFY_RESULT(file->add(run));
        const auto whole = file->read(1);
        VERIFY_RESULT(whole);
        const auto bounds = file->steps(1);
        VERIFY_RESULT(bounds);
        QVERIFY(bounds->size() > 1);
        for (const auto& step : *bounds) {
            const auto one = file->readStep(1, step.step);
            VERIFY_RESULT(one);
            std::size_t spans = 0;
            Nanos begin = step.end, end = step.begin;
            for (const Track& track : whole->timeline->tracks())
                for (const Span& span : whole->timeline->spansOf(track)) {
                    if (span.step != step.step) continue;
                    ++spans;
                    // a host runs ahead: its ranges don't bound a step that has work
                    if (track.lane == Lane::Other) continue;
                    begin = std::min(begin, span.start);
                    end = std::max(end, span.end);
                }
            QCOMPARE(one->timeline->spans().size(), spans);
            QCOMPARE(static_cast<std::size_t>(step.spans), spans);
            QCOMPARE(step.begin, begin);
            QCOMPARE(step.end, end);
            std::size_t edges = 0;
            for (const Edge& edge : whole->timeline->edges())
                edges += whole->timeline->spans()[edge.from].step == step.step &&
                         whole->timeline->spans()[edge.to].step == step.step;
            QCOMPARE(one->timeline->edges().size(), edges);
        }
    }

    void launchShapesAreKept()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 1);
        const int track = builder.addTrack(0, Lane::Kernel, "rank 0 stream 7");
        const char* shapes[] = {"grid 8×1×1, block 128×1×1", "", "grid 64×1×1, block 128×1×1, inputs [[64,512]]"};
        for (int i = 0; i < 6; ++i) {
            Span span;
            span.start = i * 10;
            span.end = span.start + 10;
            span.label = builder.intern(i < 3 ? "gemm" : "gelu", shapes[i % 3]) & 0xffffffu;
            builder.addSpan(track, span);
        }
        Run run;
        run.info.name = "shapes";
        run.timeline = builder.build().value();
        auto file = fresh();
        VERIFY_RESULT(file->add(run));
        const auto back = file->read(1);
        VERIFY_RESULT(back);
        QCOMPARE(QString::fromStdString(samples::difference(*run.timeline, *back->timeline)), QString());
        for (int i = 0; i < 6; ++i) {
            const Span& span = back->timeline->spans()[static_cast<std::size_t>(i)];
            QCOMPARE(back->timeline->shapeOf(span), std::string_view(shapes[i % 3]));
            QCOMPARE(back->timeline->labelOf(span), std::string_view(i < 3 ? "gemm" : "gelu"));
        }
        const auto rows = file->query(
            "SELECT l.text, s.text FROM label l LEFT JOIN label_shape s USING(run, label) ORDER BY l.label");
        VERIFY_RESULT(rows);
        QCOMPARE(rows->rows.size(), std::size_t(6));
        // Appended to another timeline, each keeps its own.
        TimelineBuilder joined(Provenance::Imported, "wall", 1);
        joined.intern("gemm");
        joined.append(*run.timeline);
        const auto both = joined.build().value();
        for (int i = 0; i < 6; ++i)
            QCOMPARE(both->shapeOf(both->spans()[static_cast<std::size_t>(i)]), std::string_view(shapes[i % 3]));
        const auto none = samples::simulated("1f1b", 2, 2);
        QVERIFY(none->shapeOf(none->spans()[0]).empty());
    }

    void othersReadWhileItRecords()
    {
        const std::string path = freshPath();
        const auto timeline = samples::simulated("1f1b", 2, 4);
        int toChild[2];
        int toParent[2];
        QVERIFY(::pipe(toChild) == 0 && ::pipe(toParent) == 0);
        const pid_t child = ::fork();
        if (child == 0) { // records two steps, waits, and is killed
            auto file = RunFile::open(path, OpenMode::Create);
            auto writer = (*file)->begin(header("killed"));
            char token = 'x';
            for (int step = 0; step < 2; ++step)
                if (!(*writer)->append(*timeline, {{"loss", 1.0}})) ::_exit(3);
            if (::write(toParent[1], &token, 1) != 1) ::_exit(4);
            if (::read(toChild[0], &token, 1) != 1) ::_exit(5);
            ::pause();
            ::_exit(0);
        }
        char token = 0;
        QCOMPARE(::read(toParent[0], &token, 1), ssize_t{1});
        {
            auto reader = RunFile::open(path, OpenMode::Read);
            VERIFY_RESULT(reader);
            QCOMPARE((*reader)->runs()->front().state, RunState::Recording);
            auto run = (*reader)->read(1);
            VERIFY_RESULT(run);
            QCOMPARE(run->timeline->spans().size(), 2 * timeline->spans().size());
            QCOMPARE(run->metric("loss")->values.size(), std::size_t{2});
            auto second = RunFile::open(path, OpenMode::Write);
            VERIFY_RESULT(second);
            const auto refused = (*second)->rename(1, "other");
            QVERIFY(!refused.has_value());
            QCOMPARE(refused.error().code, ErrorCode::Unavailable);
            QVERIFY(!refused.error().remedy.empty());
        }
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        {
            auto reader = RunFile::open(path, OpenMode::Read);
            VERIFY_RESULT(reader);
            QCOMPARE((*reader)->runs()->front().state, RunState::Interrupted);
            QCOMPARE((*reader)->read(1)->timeline->spans().size(), 2 * timeline->spans().size());
        }
        {
            auto writer = RunFile::open(path, OpenMode::Write);
            VERIFY_RESULT(writer);
            VERIFY_RESULT((*writer)->rename(1, "saved"));
            QCOMPARE((*writer)->runs()->front().name, std::string("saved"));
        }
        QVERIFY(!fs::exists(path + "-wal"));
        QVERIFY(!fs::exists(path + "-lock"));
        for (const int end : {toChild[0], toChild[1], toParent[0], toParent[1]}) ::close(end);
    }

    void aFullDiskKeepsCompleteSteps()
    {
        auto file = fresh();
        const auto step = samples::randomTimeline(3, 2, 1, 2000);
        auto writer = file->begin(header("full"));
        VERIFY_RESULT(writer);
        VERIFY_RESULT((*writer)->append(*step, {{"loss", 2.0}}));
        VERIFY_RESULT(file->limitSize(static_cast<std::int64_t>(fs::file_size(file->path()) + 200'000)));
        int kept = 1;
        Result<void> done;
        for (int i = 0; i < 100 && done; ++i) {
            done = (*writer)->append(*step, {{"loss", 1.0}});
            if (done) ++kept;
        }
        QVERIFY(!done.has_value());
        QCOMPARE(done.error().code, ErrorCode::Failed);
        QVERIFY2(done.error().message.find("disk is full") != std::string::npos, done.error().message.c_str());
        QVERIFY(!done.error().remedy.empty());
        writer->reset();
        auto run = file->read(1);
        VERIFY_RESULT(run);
        QCOMPARE(run->info.state, RunState::Interrupted);
        QCOMPARE(run->timeline->spans().size(), static_cast<std::size_t>(kept) * step->spans().size());
        QCOMPARE(run->metric("loss")->values.size(), static_cast<std::size_t>(kept));
        QCOMPARE(run->info.damagedBlocks, 0);
        // with room again the file takes more
        VERIFY_RESULT(file->limitSize(0));
        VERIFY_RESULT(file->add(samples::simulatedRun("gpipe", 2, 4)));
    }

    void labelsOfAStepThatFailedAreForgotten()
    {
        auto file = fresh();
        const auto step = [](int number, int spans, const std::string& label) {
            TimelineBuilder builder(Provenance::Measured, "one", 1);
            const int track = builder.addTrack(0, Lane::Compute, "rank 0");
            Span span;
            for (int i = 0; i < spans; ++i) { // a label each, so that they take room
                span.step = number;
                span.start = 1'000'000 * number + 10 * i;
                span.end = span.start + 5;
                span.label = builder.intern(label + std::to_string(i));
                builder.addSpan(track, span);
            }
            return builder.build().value();
        };
        auto writer = file->begin(header("labels"));
        VERIFY_RESULT(writer);
        VERIFY_RESULT((*writer)->append(*step(0, 2, "first "), {}));
        VERIFY_RESULT(file->limitSize(static_cast<std::int64_t>(fs::file_size(file->path()) + 50'000)));
        QVERIFY(!(*writer)->append(*step(1, 20'000, "too many "), {}).has_value());
        VERIFY_RESULT(file->limitSize(0));
        VERIFY_RESULT((*writer)->append(*step(1, 2, "second "), {}));
        VERIFY_RESULT((*writer)->append(*step(2, 3, "too many "), {}));
        VERIFY_RESULT((*writer)->finish());
        const auto run = file->read(1);
        VERIFY_RESULT(run);
        QStringList labels;
        for (const Span& span : run->timeline->spans())
            labels << QString::fromStdString(std::string(run->timeline->labelOf(span)));
        QCOMPARE(labels.join(", "),
                 QString("first 0, first 1, second 0, second 1, too many 0, too many 1, too many 2"));
    }

    void aWriteThatFailsIsAnError()
    {
        const std::string path = freshPath();
        const auto step = samples::randomTimeline(3, 2, 1, 2000);
        const pid_t child = ::fork();
        if (child == 0) { // the limit on file sizes is the process's own
            ::signal(SIGXFSZ, SIG_IGN);
            auto file = RunFile::open(path, OpenMode::Create);
            if (!file) ::_exit(2);
            const rlimit limit{400'000, 400'000};
            ::setrlimit(RLIMIT_FSIZE, &limit);
            auto writer = (*file)->begin(header("limited"));
            if (!writer) ::_exit(3);
            for (int i = 0; i < 100; ++i)
                if (const auto done = (*writer)->append(*step, {}); !done)
                    ::_exit(done.error().code == ErrorCode::Failed ? 0 : 4);
            ::_exit(5);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        QVERIFY(WIFEXITED(status));
        QCOMPARE(WEXITSTATUS(status), 0);
        auto run = RunFile::open(path, OpenMode::Read).value()->read(1);
        VERIFY_RESULT(run);
        QCOMPARE(run->info.state, RunState::Interrupted);
        QCOMPARE(run->timeline->spans().size() % step->spans().size(), std::size_t{0});
    }

    void runsAreFoundRenamedNotedAndRemoved()
    {
        auto file = fresh();
        for (int i = 0; i < 3; ++i) VERIFY_RESULT(file->add(samples::simulatedRun("1f1b", 2, 2)));
        QCOMPARE(file->find("2").value(), 2);
        QCOMPARE(file->find("#3").value(), 3);
        QCOMPARE(file->find("1f1b").value(), 3); // the newest
        VERIFY_RESULT(file->rename(1, "mine"));
        VERIFY_RESULT(file->annotate(1, "a note"));
        QCOMPARE(file->find("mine").value(), 1);
        QCOMPARE(file->runs()->front().note, std::string("a note"));
        const auto unknown = file->find("nobody");
        QVERIFY(!unknown.has_value());
        QCOMPARE(unknown.error().code, ErrorCode::Usage);
        QVERIFY(unknown.error().remedy.find("1 mine") != std::string::npos);
        VERIFY_RESULT(file->remove(2));
        QVERIFY(!file->remove(2).has_value());
        QVERIFY(!file->read(2).has_value());
        QCOMPARE(file->runs()->size(), std::size_t{2});
        QCOMPARE(file->query("SELECT count(*) FROM span_block WHERE run=2")->rows[0][0], std::string("0"));
        auto next = file->add(samples::simulatedRun("gpipe", 2, 2));
        QCOMPARE(*next, 4); // ids are not used twice
        const auto before = fs::file_size(file->path());
        VERIFY_RESULT(file->remove(1));
        VERIFY_RESULT(file->compact());
        QVERIFY(fs::file_size(file->path()) <= before);
        QCOMPARE(file->runs()->size(), std::size_t{2});
    }

    void runsAreFoundByTheirSchedule()
    {
        auto file = fresh();
        Run run = samples::simulatedRun("1f1b", 2, 2);
        run.info.name = run.info.scheduleName = "interleaved-1f1b v=2";
        VERIFY_RESULT(file->add(run));
        run.info.scheduleName = "interleaved-1f1b v=4";
        run.info.name = "renamed";
        VERIFY_RESULT(file->add(run));
        run.info.scheduleName = "zb-h1";
        run.info.name = "interleaved-1f1b";
        VERIFY_RESULT(file->add(run));
        QCOMPARE(file->find("interleaved-1f1b v=2").value(), 1);
        QCOMPARE(file->find("interleaved-1f1b v=4").value(), 2);
        QCOMPARE(file->find("zb-h1").value(), 3);
        QCOMPARE(file->find("interleaved-1f1b").value(), 3); // a name goes before a schedule
        VERIFY_RESULT(file->remove(3));
        QCOMPARE(file->find("interleaved-1f1b").value(), 2); // the newest
        VERIFY_RESULT(file->remove(2));
        QCOMPARE(file->find("interleaved-1f1b").value(), 1);
        QVERIFY(!file->find("interleaved").has_value());
        QVERIFY(!file->find("").has_value());
    }

    void readingDoesNotWrite()
    {
        const std::string path = freshPath();
        RunFile::open(path, OpenMode::Create).value()->add(samples::simulatedRun("1f1b", 2, 2)).value();
        auto file = RunFile::open(path, OpenMode::Read);
        VERIFY_RESULT(file);
        QCOMPARE((*file)->rename(1, "x").error().code, ErrorCode::Usage);
        QVERIFY(!(*file)->add(samples::simulatedRun("1f1b", 2, 2)).has_value());
    }

    void filesAreMerged()
    {
        auto a = fresh();
        auto b = fresh();
        const Run first = samples::randomRun(1);
        const Run second = samples::randomRun(2);
        VERIFY_RESULT(a->add(first));
        VERIFY_RESULT(b->add(second));
        VERIFY_RESULT(b->add(samples::simulatedRun("gpipe", 2, 2)));
        VERIFY_RESULT(a->merge(b->path()));
        QCOMPARE(a->runs()->size(), std::size_t{3});
        QCOMPARE(QString::fromStdString(samples::difference(first, *a->read(1))), QString());
        QCOMPARE(QString::fromStdString(samples::difference(second, *a->read(2))), QString());
        QVERIFY(!a->merge(a->path()).has_value());
        QVERIFY(!a->merge(freshPath()).has_value());
        QCOMPARE(a->runs()->size(), std::size_t{3});
        VERIFY_RESULT(a->merge(b->path())); // and again: nothing is left attached
    }

    // From one pass over the tables, and the same as the run's own: also of a run that was killed, with its steps where
    // they were logged.
    void theListSaysWhatTheRunsSay()
    {
        const std::string path = freshPath();
        const pid_t child = ::fork();
        if (child == 0) {
            const auto file = RunFile::open(path, OpenMode::Create);
            Run measured = samples::simulatedRun("1f1b", 2, 4);
            measured.configuration = {{"model", "layers=2"}, {"memory_limit_bytes", "1000"}};
            measured.metrics = {{"loss", "nats", {}}, {"contention", "", {}}};
            measured.info.warmupSteps = 0;
            const auto writer = file ? (*file)->begin(measured) : tl::unexpected(file.error());
            if (writer && (*writer)->append(*samples::simulated("1f1b", 2, 4), {{"loss", 2.0}, {"contention", 0.25}}))
                ::kill(::getpid(), SIGKILL);
            ::_exit(1);
        }
        int status = 0;
        QCOMPARE(::waitpid(child, &status, 0), child);
        QVERIFY(WIFSIGNALED(status));
        const auto listed = [&path] {
            std::vector<RunFile::ListedRun> all;
            const auto file = RunFile::open(path, OpenMode::Read).value();
            const auto done = file->list([&](RunFile::ListedRun one) { all.push_back(std::move(one)); });
            return done ? all : std::vector<RunFile::ListedRun>();
        };
        QCOMPARE(listed().size(), std::size_t{1});
        QCOMPARE(listed()[0].run.metrics.size(), std::size_t{1});
        QCOMPARE(listed()[0].run.metrics[0].values, std::vector<double>{0.25}); // of the log of steps
        {
            const auto file = RunFile::open(path, OpenMode::Write).value();
            for (const char* name : {"gpipe", "zb-h1", "1f1b"}) {
                Run run = samples::simulatedRun(name, 2, 4);
                run.configuration = {{"model", name}, {"perturb", "none"}};
                run.environment = {{"model", "not this one"}};
                VERIFY_RESULT(file->add(run));
            }
            VERIFY_RESULT(file->remove(3)); // numbers with a gap
            Note note;
            note.text = "slow";
            note.op = "0F0";
            VERIFY_RESULT(file->setNotes(4, {note, note}));
        }
        const auto file = RunFile::open(path, OpenMode::Read).value();
        const auto all = listed();
        const auto infos = file->runs();
        VERIFY_RESULT(infos);
        QCOMPARE(all.size(), std::size_t{3});
        QCOMPARE(infos->size(), all.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
            const Run header = file->readHeader((*infos)[i].id).value();
            QCOMPARE(all[i].run.info.id, header.info.id);
            QCOMPARE(all[i].run.info.name, header.info.name);
            QCOMPARE(all[i].run.info.steps, header.info.steps);
            QCOMPARE(all[i].run.info.state, header.info.state);
            QCOMPARE(all[i].run.configuration, header.configuration);
            QVERIFY(all[i].run.costs == header.costs);
            QCOMPARE(all[i].timeUnit, header.timeline->timeUnit());
            QCOMPARE(all[i].memoryUnit, header.timeline->memoryUnit());
            const Metric* contention = header.metric("contention");
            QCOMPARE(all[i].run.metrics.empty() ? std::vector<double>() : all[i].run.metrics[0].values,
                     contention != nullptr ? contention->values : std::vector<double>());
            QVERIFY(all[i].notes == file->notes(header.info.id).value());
        }
        QCOMPARE(all[2].notes.size(), std::size_t{2});
        QVERIFY(all[0].notes.empty());

        std::stop_source stop;
        stop.request_stop();
        QCOMPARE(file->list([](const RunFile::ListedRun&) {}, {{}, stop.get_token()}).error().code,
                 ErrorCode::Cancelled);
    }

    // The file, what is beside it while it is recorded, and nothing where it can't be made.
    void newFilesHaveTheModeOfTheUmask()
    {
        const auto modeOf = [](const std::string& path) {
            return static_cast<unsigned>(fs::status(path).permissions());
        };
        for (const auto& [mask, mode] : {std::pair(002u, 0664u), {022u, 0644u}, {077u, 0600u}, {0u, 0666u}}) {
            const std::string path = freshPath();
            const mode_t before = ::umask(mask);
            auto file = RunFile::open(path, OpenMode::Create);
            auto writer = file ? (*file)->begin(header("recorded")) : tl::unexpected(file.error());
            const bool appended = writer && (*writer)->append(*samples::simulated("1f1b", 2, 2), {{"loss", 1.0}});
            ::umask(before);
            QVERIFY(appended);
            for (const char* suffix : {"", "-wal", "-shm", "-lock"}) QCOMPARE(modeOf(path + suffix), mode);
        }
        // too many open files: an Error that says so, and no file
        const std::string path = freshPath();
        const pid_t child = ::fork();
        if (child == 0) {
            std::vector<int> taken;
            for (int one = ::dup(0); one >= 0; one = ::dup(0)) taken.push_back(one);
            const auto none = RunFile::open(path, OpenMode::Create);
            ::close(taken.back());
            const auto one = RunFile::open(path, OpenMode::Create); // for the file itself, but not for its journal
            const bool said = !none && none.error().message.find("too many open files") != std::string::npos &&
                              none.error().remedy.find("ulimit -n") != std::string::npos;
            ::_exit(said && !one ? 0 : 1);
        }
        int status = 0;
        QCOMPARE(::waitpid(child, &status, 0), child);
        QVERIFY(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        QVERIFY(!fs::exists(path));
    }

    // A file that is larger than files may become is left alone: a change that fails could not be taken back.
    void largerThanFilesMayBe()
    {
        const std::string path = freshPath();
        {
            auto file = RunFile::open(path, OpenMode::Create);
            VERIFY_RESULT(file);
            VERIFY_RESULT((*file)->add(samples::simulatedRun("1f1b", 16, 64)));
        }
        const pid_t child = ::fork();
        if (child == 0) {
            ::signal(SIGXFSZ, SIG_IGN);
            const rlimit small{1024, 1024};
            const auto file = RunFile::open(path, OpenMode::Write);
            ::setrlimit(RLIMIT_FSIZE, &small);
            const auto removed = file ? (*file)->remove(1) : Result<void>();
            const bool said = !removed && removed.error().message.ends_with("it may not become larger") &&
                              removed.error().remedy.find("ulimit -f") != std::string::npos;
            ::_exit(said ? 0 : 1);
        }
        int status = 0;
        QCOMPARE(::waitpid(child, &status, 0), child);
        QVERIFY(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        const auto file = RunFile::open(path, OpenMode::Write);
        VERIFY_RESULT(file);
        QCOMPARE((*file)->runs()->size(), std::size_t{1});
    }

    void damageIsCounted()
    {
        auto file = fresh();
        const Run run = samples::simulatedRun("1f1b", 4, 16);
        VERIFY_RESULT(file->add(run));
        const std::string path = file->path();
        const auto at = QByteArray::fromStdString(path);
        file.reset();
        // the first span block: find its bytes through SQL, then break one of them in the file
        QByteArray bytes;
        {
            QFile raw(at);
            QVERIFY(raw.open(QIODevice::ReadOnly));
            bytes = raw.readAll();
        }
        int damaged = 0;
        for (qsizetype place = bytes.size() - 200; place > 0 && damaged == 0; place -= 97) {
            QByteArray broken = bytes;
            broken[place] = static_cast<char>(broken[place] ^ 0x40);
            QFile raw(at);
            QVERIFY(raw.open(QIODevice::WriteOnly | QIODevice::Truncate));
            raw.write(broken);
            raw.close();
            auto opened = RunFile::open(path, OpenMode::Read);
            if (!opened) continue;
            auto read = (*opened)->read(1);
            if (!read) { // a fault names its file once
                const auto message = QByteArray::fromStdString(read.error().message);
                QCOMPARE(message.count(at), qsizetype{1});
            }
            if (read && read->info.damagedBlocks > 0) damaged = static_cast<int>(read->info.damagedBlocks);
        }
        QVERIFY(damaged > 0);
    }

    void emptyThingsAreFine()
    {
        auto file = fresh();
        VERIFY_RESULT(file->add(Run{}));
        auto read = file->read(1);
        VERIFY_RESULT(read);
        QVERIFY(read->timeline != nullptr);
        QVERIFY(read->timeline->empty());
        QVERIFY(file->overview(1, 100)->busyByTrack.empty());
        QVERIFY(!file->read(2).has_value());
        QVERIFY(!file->overview(2, 100).has_value());
    }
};

QTEST_APPLESS_MAIN(TestRunFile)
#include "tst_run_file.moc"
