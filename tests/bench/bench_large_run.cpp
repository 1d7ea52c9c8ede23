// The window with a run of any size: time to the first and to the exact picture, longest stall of the GUI thread,
// memory.
//   QT_QPA_PLATFORM=offscreen bench_large_run [spans [ranks [microbatches [one [FILE]]]]]        (10,000,000 × 64 × 32
//   where not given)
// "one": all of it is one step, of which the window reads what is in view. FILE is kept, and measured where it is there
// already.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <string_view>
#include <thread>

#include <QApplication>
#include <QElapsedTimer>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>

#include "app/ui/runs/run_lanes.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "recorded_runs.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

namespace {

double megabytes(const char* key) // VmHWM, VmRSS
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(key)) return std::stod(line.substr(line.find(':') + 1)) / 1024;
    return 0;
}

// CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID: what a busy machine does not stretch
double cpuMilliseconds(clockid_t of)
{
    std::timespec time{};
    clock_gettime(of, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// How long the event loop was blocked at most.
class Stalls : public QObject {
public:
    Stalls()
    {
        m_clock.start();
        startTimer(1, Qt::PreciseTimer);
    }
    void reset() { m_longest = 0, m_clock.restart(); }
    double longest() const { return static_cast<double>(m_longest) / 1e6; }

protected:
    void timerEvent(QTimerEvent*) override
    {
        m_longest = std::max(m_longest, m_clock.nsecsElapsed());
        m_clock.restart();
    }

private:
    QElapsedTimer m_clock;
    qint64 m_longest = 0;
};

// First picture, frames at every zoom, details of what is in view.
int measureOneStep(MainWindow& window, const QString& path, const std::function<void(const char*)>& report,
                   const std::function<const TimelinePanel*()>& shown)
{
    Workspace& workspace = window.workspace();
    const double before = cpuMilliseconds(CLOCK_PROCESS_CPUTIME_ID);
    workspace.feature<FileOpening>()->openFiles({path});
    (void)QTest::qWaitFor([&] { return shown() != nullptr; }, 600'000);
    (void)workspace.views().timeline->grab();
    std::printf("first picture: %.0f ms of CPU time in all threads\n",
                cpuMilliseconds(CLOCK_PROCESS_CPUTIME_ID) - before);
    report("first picture");
    (void)QTest::qWaitFor([&] { return workspace.settled(); }, 600'000);
    report("settled");
    ViewState& state = *workspace.viewState();
    const Nanos whole = shown()->duration;
    double worst = 0, sum = 0;
    int frames = 0;
    for (double zoom = 1; zoom < 1e5; zoom *= 1.5) {
        const Nanos width = std::max<Nanos>(1000, static_cast<Nanos>(static_cast<double>(whole) / zoom));
        state.setVisible({whole / 3, whole / 3 + width});
        QElapsedTimer frame;
        frame.start();
        workspace.views().timeline->repaint();
        const double took = static_cast<double>(frame.nsecsElapsed()) / 1e6;
        worst = std::max(worst, took);
        sum += took;
        ++frames;
    }
    std::printf("%d frames from the whole to 1/%.0f of it: %.1f ms in the mean, %.1f ms at most\n", frames, 1e5,
                sum / frames, worst);
    (void)QTest::qWaitFor([&] { return workspace.settled(); }, 600'000);
    report("frames");
    const auto large = workspace.library()->vastRun(workspace.shown().ref());
    if (!large) return 1;
    for (const qint64 wanted : {10'000, 100'000, 200'000}) {
        std::vector<double> times, cpu;
        for (int round = 0; round < 9; ++round) {
            const Nanos begin = whole * (round + 1) / 11;
            Nanos width = whole / 2;
            while (width > 1000 &&
                   large->spansIn(begin + large->content.begin, begin + width + large->content.begin) > wanted)
                width = width * 9 / 10;
            QElapsedTimer reading;
            reading.start();
            const double begun = cpuMilliseconds(CLOCK_THREAD_CPUTIME_ID);
            const auto view = readExcerptView(*large, *shown(), begin + large->content.begin,
                                              begin + width + large->content.begin, {}, {});
            times.push_back(static_cast<double>(reading.nsecsElapsed()) / 1e6);
            cpu.push_back(cpuMilliseconds(CLOCK_THREAD_CPUTIME_ID) - begun);
            if (!view) return 1;
        }
        std::sort(times.begin(), times.end());
        std::sort(cpu.begin(), cpu.end());
        std::printf(
            "details of %lld spans in view: %.0f ms in the median, %.0f … %.0f ms; CPU time %.0f ms, %.0f … %.0f ms\n",
            static_cast<long long>(wanted), times[4], times.front(), times.back(), cpu[4], cpu.front(), cpu.back());
    }
    report("details");
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
    QTemporaryDir folder;
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, folder.path());
    const auto number = [&](int at, std::int64_t otherwise) { return argc > at ? std::atoll(argv[at]) : otherwise; };
    const std::int64_t spans = number(1, 10'000'000);
    samples::RecordedShape shape{
        static_cast<int>(number(2, 64)), static_cast<int>(number(3, 32)), 1, "zb-h1", 0.05, true};
    const QString path =
        argc > 5 ? QString::fromLocal8Bit(argv[5]) : folder.filePath(QStringLiteral("large.stagewright"));
    shape.oneStep = argc > 4 && std::string_view(argv[4]) == "one";
    std::int64_t made = 0;
    if (!QFileInfo::exists(path))
        std::thread([&] { // its memory is not the window's
            const auto perStep =
                samples::Recording(folder.filePath(QStringLiteral("probe.stagewright")).toStdString(), shape)
                    .spansPerStep();
            shape.steps = static_cast<int>(std::max<std::int64_t>(1, spans / perStep));
            made = samples::recordRun(path.toStdString(), shape).value();
        })
            .join();
    std::printf("%lld spans, %d steps, file %.0f MB\n", static_cast<long long>(made), shape.steps,
                static_cast<double>(QFileInfo(path).size()) / 1e6);

    QApplication application(argc, argv);
    MainWindow window;
    window.resize(1600, 900);
    window.show();
    (void)QTest::qWaitForWindowExposed(&window);
    const double before = megabytes("VmRSS");
    std::ofstream("/proc/self/clear_refs") << 5; // the high-water mark starts from here
    Stalls stalls;
    QElapsedTimer clock;
    const auto report = [&](const char* what) {
        std::printf("%-28s %7.0f ms, longest stall %5.1f ms, memory %5.0f MB over the window's, at most %5.0f MB\n",
                    what, static_cast<double>(clock.elapsed()), stalls.longest(), megabytes("VmRSS") - before,
                    megabytes("VmHWM") - before);
        stalls.reset();
        clock.restart();
    };
    const auto shown = [&] {
        return window.workspace().views().timeline->panels().empty()
                   ? nullptr
                   : window.workspace().views().timeline->panels().front().get();
    };
    stalls.reset();
    clock.start();
    if (shape.oneStep) return measureOneStep(window, path, report, shown);
    window.workspace().feature<FileOpening>()->openFiles({path});
    (void)QTest::qWaitFor([&] { return shown() != nullptr; }, 600'000);
    (void)window.workspace().views().timeline->grab();
    report("first picture");
    (void)QTest::qWaitFor([&] { return window.workspace().settled(); }, 600'000);
    stalls.reset();
    clock.restart();
    window.workspace().shown().showSteps(window.workspace().shown().ref(), {});
    (void)QTest::qWaitFor([&] { return shown()->isPart() || shown()->step < 0; }, 600'000);
    (void)window.workspace().views().timeline->grab();
    report("overview of every step");
    (void)QTest::qWaitFor([&] { return !shown()->overview && window.workspace().settled(); }, 600'000);
    (void)window.workspace().views().timeline->grab();
    report("every step, exact lanes");
    (void)QTest::qWaitFor([&] { return !window.workspace().views().timeline->showsDraft(); }, 600'000);
    report("every step, exact frame");
    const int other = shape.steps / 3;
    window.workspace().shown().showEveryStep(window.workspace().shown().ref(), other);
    (void)QTest::qWaitFor([&] { return window.workspace().settled() && shown()->detailStep == other; }, 600'000);
    report("details of another step");
    window.workspace().shown().showRun(window.workspace().shown().ref(), shape.steps / 2);
    (void)QTest::qWaitFor([&] { return window.workspace().settled() && shown()->step == shape.steps / 2; }, 600'000);
    report("another step alone");
    std::printf("slices alone %.0f MB; twice that %.0f MB\n", static_cast<double>(made) * 16 / 1e6,
                static_cast<double>(made) * 32 / 1e6);
    return 0;
}
