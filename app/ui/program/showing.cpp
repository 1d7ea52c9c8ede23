#include "app/ui/program/showing.h"

#include <cstdio>

#include <QApplication>
#include <QElapsedTimer>
#include <QTimer>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/explain/tools_controller.h"
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/playback/playback_controller.h"
#include "app/ui/shell/features.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "traces/store/run_file.h"
#include "widgets/literals.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

int refuse(const Error& error)
{
    return complain(3, QString::fromStdString(error.message), QString::fromStdString(error.remedy));
}

// Sleeps until something happens, or this long. (processEvents() with a time never sleeps.)
void awaitEvents(int milliseconds)
{
    QTimer wake;
    wake.setSingleShot(true);
    wake.start(milliseconds);
    QApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents);
}

Result<RunRef> refOf(const QString& file, const QString& run)
{
    STAGEWRIGHT_TRY(auto opened, RunFile::open(file.toStdString(), OpenMode::Read));
    STAGEWRIGHT_TRY(auto id, opened->find(run.toStdString()));
    return RunRef{RunLibrary::normalised(file), id};
}

int showBaseline(Workspace& workspace, const CommandLine& line)
{
    auto ref = refOf(line.files.first(), line.baseline);
    if (!ref) return refuse(ref.error());
    auto* comparing = workspace.feature<CompareController>();
    comparing->setBaseline(*ref);
    waitUntil([&] { return comparing->baseline().valid() || !workspace.banner()->text().isEmpty(); }, 60000);
    return 0;
}

int showRuns(Workspace& workspace, const CommandLine& line)
{
    std::vector<RunRef> refs;
    const QStringList names =
        line.compare.isEmpty() ? QStringList{line.run.isEmpty() ? u"1"_s : line.run} : line.compare;
    for (const QString& name : names) {
        auto ref = refOf(line.files.first(), name);
        if (!ref) return refuse(ref.error());
        refs.push_back(*ref);
    }
    if (!waitUntil([&] { return workspace.settled(); }, 60000))
        return complain(3, u"%1: reading timed out"_s.arg(line.files.first()));
    if (refs.size() >= 2)
        workspace.feature<CompareController>()->show(refs);
    else
        workspace.shown().showRun(refs[0], line.step);
    return 0;
}

void playTo(Workspace& workspace, int beat)
{
    Player* player = workspace.feature<PlaybackController>()->player();
    workspace.actions()["nextBeat"]->trigger();
    waitUntil([&] { return player->active() || workspace.settled(); }, 60000);
    if (!player->active()) return;
    while (player->beat() < beat && player->cursor() < player->beats()->end) player->nextBeat();
}

} // namespace

int complain(int code, const QString& message, const QString& remedy)
{
    std::fprintf(stderr, "stagewright-ui: %s%s%s\n", qPrintable(message), remedy.isEmpty() ? "" : "; ",
                 qPrintable(remedy));
    return code;
}

bool waitUntil(const std::function<bool()>& done, int milliseconds)
{
    constexpr int look = 20;
    QElapsedTimer timer;
    timer.start();
    while (!done()) {
        if (timer.elapsed() > milliseconds) return false;
        awaitEvents(look);
    }
    return true;
}

void waitFor(int milliseconds)
{
    QElapsedTimer timer;
    timer.start();
    for (qint64 left = milliseconds; left > 0; left = milliseconds - timer.elapsed())
        awaitEvents(static_cast<int>(left));
}

int showAsked(MainWindow& window, const CommandLine& line)
{
    if (line.files.isEmpty()) return 0;
    Workspace& workspace = window.workspace();
    workspace.feature<FileOpening>()->openFiles(line.files);
    if (!line.baseline.isEmpty())
        if (const int code = showBaseline(workspace, line)) return code;
    if (line.run.isEmpty() && line.compare.isEmpty() && line.step < 0) return 0;
    return showRuns(workspace, line);
}

void showPlace(MainWindow& window, const CommandLine& line)
{
    Workspace& workspace = window.workspace();
    if (!line.select.isEmpty()) workspace.feature<OpFinding>()->find(line.select);
    const auto& panels = workspace.views().timeline->panels();
    if (!line.range || panels.empty()) return;
    const TimeRange range{panels.front()->toAxis(line.range->first), panels.front()->toAxis(line.range->second)};
    const TimeRange& all = workspace.viewState()->extent();
    if (range.begin < all.end && range.end > all.begin) workspace.viewState()->fit(range); // else it is of another step
}

int showLesson(MainWindow& window, const CommandLine& line)
{
    if (line.lesson.isEmpty()) return 0;
    auto* lessons = window.workspace().feature<LessonController>();
    if (line.lesson == "shelf"_L1)
        lessons->openShelf();
    else
        lessons->start(line.lesson, false, line.lessonPage);
    if (!line.leaves()) return 0;
    if (!waitUntil([&] { return window.workspace().settled(); }, 60000)) return complain(5, u"the lesson timed out"_s);
    waitFor(200);
    if (!waitUntil([&] { return window.workspace().settled(); }, 60000)) return complain(5, u"the lesson timed out"_s);
    if (line.lesson != "shelf"_L1 && lessons->session() == nullptr)
        return complain(3, window.workspace().banner()->text());
    return 0;
}

void showView(MainWindow& window, const CommandLine& line)
{
    const ShowEntry* shown = findShown(line.show);
    if (shown != nullptr && shown->view != nullptr)
        shown->view({window.workspace(), line.show, line.schedule, &waitUntil});
    if (!line.whatIf.isEmpty()) window.workspace().feature<ToolsController>()->askWhatIf(line.whatIf);
    if (line.beat >= 0) playTo(window.workspace(), line.beat);
}

const ShowEntry* findShown(const QString& name)
{
    for (const ShowEntry& entry : allShown())
        if (name == QLatin1String(entry.name)) return &entry;
    return nullptr;
}

ShownDialog openDialog(MainWindow& window, const ShowEntry& entry, const QString& schedule, bool waits)
{
    const auto goOn = [](const std::function<bool()>&, int) { return true; };
    return entry.dialog(
        {window.workspace(), QLatin1String(entry.name), schedule, waits ? std::function(&waitUntil) : goOn});
}

} // namespace stagewright
