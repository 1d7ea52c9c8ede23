// stagewright-ui: the window, or a picture of it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include <QApplication>
#include <QDialog>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QIcon>
#include <QListWidget>
#include <QPainter>
#include <QSettings>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTimer>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/exchange/export_controller.h"
#include "app/ui/exchange/import_controller.h"
#include "app/ui/explain/device_controller.h"
#include "app/ui/explain/tools_controller.h"
#include "app/ui/explore/explorer_controller.h"
#include "app/ui/explore/library_controller.h"
#include "app/ui/flame/flame_controller.h"
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/mapper/mapper_controller.h"
#include "app/ui/playback/playback_controller.h"
#include "app/ui/program/command_line.h"
#include "app/ui/program/end_signals.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/shell/key_page.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/shell/palette_controller.h"
#include "app/ui/shell/window_set.h"
#include "app/ui/sql/built_in_queries.h"
#include "app/ui/sql/sql_controller.h"
#include "app/ui/tables/tables_controller.h"
#include "app/ui/version.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "traces/store/run_file.h"
#include "widgets/console/sql_console.h"
#include "widgets/device/device_panel.h"
#include "widgets/export/export_dialog.h"
#include "widgets/hosts/hosts_page.h"
#include "widgets/library/block_editor.h"
#include "widgets/library/schedule_browser.h"
#include "widgets/mapper/mapper_panel.h"
#include "widgets/memory/memory_view.h"
#include "widgets/preferences/preferences_dialog.h"
#include "widgets/record/record_dialog.h"
#include "widgets/tables/tables_panel.h"
#include "widgets/theme.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

namespace {

int complain(int code, const QString& message, const QString& remedy = {})
{
    std::fprintf(stderr, "stagewright-ui: %s%s%s\n", qPrintable(message), remedy.isEmpty() ? "" : "; ", qPrintable(remedy));
    return code;
}

// Sleeps until something happens, or this long. (processEvents() with a time never sleeps.)
void awaitEvents(int milliseconds)
{
    QTimer wake;
    wake.setSingleShot(true);
    wake.start(milliseconds);
    QApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents);
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

void settle(int milliseconds)
{
    QElapsedTimer timer;
    timer.start();
    for (qint64 left = milliseconds; left > 0; left = milliseconds - timer.elapsed()) awaitEvents(static_cast<int>(left));
}

Result<RunRef> refOf(const QString& file, const QString& run)
{
    auto opened = RunFile::open(file.toStdString(), OpenMode::Read);
    if (!opened) return tl::unexpected(opened.error());
    auto id = (*opened)->find(run.toStdString());
    if (!id) return tl::unexpected(id.error());
    return RunRef{RunLibrary::normalised(file), *id};
}

// Shows what the command line names. Returns an exit code, 0 on success.
int showAsked(MainWindow& window, const CommandLine& line)
{
    if (line.files.isEmpty()) return 0;
    window.workspace().feature<FileOpening>()->openFiles(line.files);
    if (!line.baseline.isEmpty()) {
        auto ref = refOf(line.files.first(), line.baseline);
        if (!ref) return complain(3, QString::fromStdString(ref.error().message), QString::fromStdString(ref.error().remedy));
        window.workspace().feature<CompareController>()->setBaseline(*ref);
        waitUntil([&] { return window.workspace().feature<CompareController>()->baseline().valid() || !window.workspace().banner()->text().isEmpty(); }, 60000);
    }
    if (line.run.isEmpty() && line.compare.isEmpty() && line.step < 0) return 0;
    std::vector<RunRef> refs;
    const QStringList names = line.compare.isEmpty() ? QStringList{line.run.isEmpty() ? QStringLiteral("1") : line.run} : line.compare;
    for (const QString& name : names) {
        auto ref = refOf(line.files.first(), name);
        if (!ref) return complain(3, QString::fromStdString(ref.error().message), QString::fromStdString(ref.error().remedy));
        refs.push_back(*ref);
    }
    if (!waitUntil([&] { return window.workspace().settled(); }, 60000)) return complain(3, QStringLiteral("%1: reading timed out").arg(line.files.first()));
    if (refs.size() >= 2)
        window.workspace().feature<CompareController>()->show(refs);
    else
        window.workspace().shown().showRun(refs[0], line.step);
    return 0;
}

// A lesson, or the shelf. Returns an exit code, 0 on success.
int showLesson(MainWindow& window, const CommandLine& line)
{
    if (line.lesson.isEmpty()) return 0;
    LessonController* lessons = window.workspace().feature<LessonController>();
    if (line.lesson == QLatin1String("shelf"))
        lessons->openShelf();
    else
        lessons->start(line.lesson, false, line.lessonPage);
    if (!waitUntil([&] { return window.workspace().settled(); }, 60000)) return complain(5, QStringLiteral("the lesson timed out"));
    settle(200);
    if (!waitUntil([&] { return window.workspace().settled(); }, 60000)) return complain(5, QStringLiteral("the lesson timed out"));
    if (line.lesson != QLatin1String("shelf") && lessons->session() == nullptr) return complain(3, window.workspace().banner()->text());
    return 0;
}

// The parts of the window that replace others; the run is shown.
void showPart(MainWindow& window, const CommandLine& line)
{
    if (line.show == QLatin1String("edit")) window.workspace().feature<OrderEditing>()->enterEdit();
    if (line.show == QLatin1String("plan")) {
        window.workspace().actions()["comparePlan"]->trigger();
        waitUntil([&] { return window.workspace().settled(); }, 60000);
    }
    if (line.show == QLatin1String("gap")) window.workspace().actions()["nextGap"]->trigger();
    if (line.show == QLatin1String("slack")) window.workspace().actions()["slack"]->trigger();
    if (line.show == QLatin1String("lowered")) window.workspace().shown().setTool(Shown::Tool::Lowered);
    if (line.show == QLatin1String("residuals")) window.workspace().shown().setTool(Shown::Tool::Residuals);
    if (line.show == QLatin1String("notes")) window.workspace().actions()["notesList"]->trigger();
    if (const qsizetype page = QStringList{"kernels", "links", "roofline"}.indexOf(line.show); page >= 0) {
        window.workspace().actions()["deviceTables"]->trigger();
        window.workspace().feature<DeviceController>()->panel()->pages()->setCurrentIndex(static_cast<int>(page));
        waitUntil([&] { return window.workspace().settled(); }, 60000);
    }
    if (line.show == QLatin1String("mapper")) { // with the rules that are suggested, and a name chosen
        auto* mapper = window.workspace().feature<MapperController>();
        mapper->open();
        waitUntil([&] { return window.workspace().settled(); }, 60000);
        mapper->suggest();
        waitUntil([&] { return window.workspace().settled(); }, 60000);
        mapper->panel()->chooseRow(1);
    }
    if (line.show == QLatin1String("flame")) {
        window.workspace().feature<FlameController>()->dock()->show();
        waitUntil([&] { return window.workspace().settled(); }, 60000);
    }
    if (line.show == QLatin1String("tables") || line.show == QLatin1String("curves")) { // the time of each class of kernels, without kernels the first table; or the loss step by step
        auto* tables = window.workspace().feature<TablesController>();
        tables->dock()->show();
        waitUntil([&] { return window.workspace().settled(); }, 60000);
        TablesPanel& panel = *tables->panel();
        panel.choose(line.show == QLatin1String("curves") ? QStringLiteral("loss_curves") : QStringLiteral("kernel_classes"));
        if (line.show == QLatin1String("tables") && panel.table() == nullptr) panel.names()->setCurrentRow(panel.firstWithRows());
    }
    if (line.show == QLatin1String("by-host")) {
        RowSettings rows = window.workspace().viewState()->rows();
        rows.grouping = Grouping::Host;
        window.workspace().viewState()->setRows(rows);
    }
    if (line.show == QLatin1String("search")) window.workspace().actions()["searchList"]->trigger();
    if (line.show == QLatin1String("sql")) {
        window.workspace().actions()["sqlConsole"]->trigger();
        const std::string query = builtInQueries().front().sql;
        window.workspace().feature<SqlController>()->console()->setQuery(QString::fromStdString(query));
        window.workspace().feature<SqlController>()->ask(QString::fromStdString(query));
        waitUntil([&] { return window.workspace().settled(); }, 60000);
        window.workspace().feature<SqlController>()->showAllRows();
    }
    if (line.show == QLatin1String("steps")) window.workspace().actions()["allSteps"]->trigger();
    if (line.show == QLatin1String("range")) { // the middle of every rank's time
        const TimeRange all = window.workspace().viewState()->extent();
        const int ranks = static_cast<int>(window.workspace().views().timeline->layout().plan->rankAt.size());
        window.workspace().viewState()->setAreas({{{all.begin + all.duration() * 3 / 10, all.begin + all.duration() * 6 / 10}, 0, ranks - 1}});
        waitUntil([&] { return window.workspace().settled(); }, 60000);
    }
    if (line.show == QLatin1String("stacked")) {
        MemorySettings settings = window.workspace().views().memory->settings();
        settings.shown.assign(memoryCategoryCount, true);
        window.workspace().views().memory->setSettings(settings);
        waitUntil([&] { return window.workspace().settled(); }, 60000);
    }
    if (line.show == QLatin1String("rows")) { // the last rank pinned, the second folded, the first group open
        RowSettings rows = window.workspace().viewState()->rows();
        const int ranks = static_cast<int>(window.workspace().views().timeline->layout().plan->rankAt.size());
        rows.pinned = {ranks - 1};
        rows.collapsed = {1};
        rows.expanded = {0};
        rows.waits = true;
        window.workspace().viewState()->setRows(rows);
    }
    if (const auto topic = std::array{QLatin1String("state"), QLatin1String("uneven"), QLatin1String("partial")}; line.show == QLatin1String("explore") || line.show == QLatin1String("heat") || std::count(topic.begin(), topic.end(), line.show) > 0) {
        ExploreView* view = window.workspace().feature<ExplorerController>()->view();
        window.workspace().feature<ExplorerController>()->setShown(true);
        view->setShowsHeat(line.show == QLatin1String("heat"));
        const auto at = std::find(topic.begin(), topic.end(), line.show);
        view->setShowsState(at != topic.end());
        if (at != topic.end()) view->state()->setTopic(static_cast<StateTopic>(at - topic.begin()));
        waitUntil([&] { return window.workspace().settled(); }, 60000);
    }
    if (!line.whatIf.isEmpty()) window.workspace().feature<ToolsController>()->askWhatIf(line.whatIf);
    if (line.beat < 0) return;
    Player* player = window.workspace().feature<PlaybackController>()->player();
    window.workspace().actions()["nextBeat"]->trigger();
    waitUntil([&] { return player->active() || window.workspace().settled(); }, 60000);
    if (!player->active()) return;
    while (player->beat() < line.beat && player->cursor() < player->beats()->end)
        player->nextBeat();
}

int drawAndLeave(MainWindow& window, const CommandLine& line)
{
    for (const QString& file : line.files)
        if (!QFileInfo(file).isReadable()) return complain(3, QStringLiteral("file %1 can't be read").arg(file), QStringLiteral("check its name"));
    window.resize(line.size);
    if (line.hideRuns && window.workspace().actions()["runsList"]->isChecked()) window.workspace().actions()["runsList"]->trigger();
    window.show();
    if (const int code = showAsked(window, line)) return code;
    if (!waitUntil([&] { return window.workspace().settled() || !window.workspace().banner()->text().isEmpty(); }, 120000)) return complain(3, QStringLiteral("reading timed out"));
    auto* stuck = window.findChild<QDialog*>(QStringLiteral("deadlock"));
    if (!line.files.isEmpty() && window.workspace().shown().mode() == Shown::Mode::Empty && stuck == nullptr && window.workspace().feature<ImportController>()->dialog() == nullptr) return complain(3, window.workspace().banner()->text().isEmpty() ? QStringLiteral("no run to draw in %1").arg(line.files.first()) : window.workspace().banner()->text());
    if (line.hideMemory && window.workspace().actions()["memory"]->isChecked()) window.workspace().actions()["memory"]->trigger();
    if (!line.select.isEmpty()) window.workspace().feature<OpFinding>()->find(line.select);
    if (const int code = showLesson(window, line)) return code;
    showPart(window, line);
    if (!waitUntil([&] { return window.workspace().settled(); }, 60000)) return complain(5, QStringLiteral("the tool timed out"));
    settle(400); // exact frames come from a worker
    if (!line.exportKind.isEmpty()) {
        PictureStyle style = window.workspace().feature<ExportController>()->screenStyle();
        if (line.picture.paper) style.look = PictureStyle::Look::Paper;
        if (line.picture.millimetres > 0) style.widthMm = line.picture.millimetres;
        if (line.picture.points > 0) style.textPoints = line.picture.points;
        style.hatched = line.picture.hatched;
        style.caption = line.picture.caption;
        style.legend = line.picture.legend;
        if (!line.picture.parts.isEmpty()) {
            style.without.clear();
            for (const PicturePart& part : window.workspace().feature<ExportController>()->picture().parts)
                if (part.role == PicturePart::Role::View && !line.picture.parts.contains(part.name.toLower())) style.without << part.name;
        }
        const auto kind = pictureKind(line.exportKind);
        if (embedsImage(window.workspace().feature<ExportController>()->picture(), style, *kind))
            std::fprintf(stderr, "stagewright-ui: more than %lld slices are in view, so they are embedded as an image\n", static_cast<long long>(mostVectorSlices));
        auto done = window.workspace().feature<ExportController>()->write(line.output, style, kind);
        if (!done && done.error().code == ErrorCode::Usage) return complain(2, QString::fromStdString(done.error().message), QString::fromStdString(done.error().remedy));
        return done ? 0 : complain(5, QString::fromStdString(done.error().message), QString::fromStdString(done.error().remedy));
    }
    QImage image = window.grab().toImage();
    QDialog* dialog = stuck; // an order that hangs has its own dialog
    if (line.show == QLatin1String("record")) dialog = window.workspace().feature<Recording>()->openRecordDialog();
    if (line.show == QLatin1String("import")) window.workspace().feature<ImportController>()->open();
    if (ImportDialog* traces = window.workspace().feature<ImportController>()->dialog()) { // also for the named traces
        if (!waitUntil([&] { return traces->settled(); }, 300000)) return complain(5, QStringLiteral("reading the traces timed out"));
        dialog = traces;
    }
    if (line.show == QLatin1String("export")) {
        ExportDialog* picture = window.workspace().feature<ExportController>()->openDialog();
        if (picture == nullptr || !waitUntil([&] { return picture->settled(); }, 60000)) return complain(5, QStringLiteral("there is nothing to export"));
        dialog = picture;
    }
    if (line.show == QLatin1String("new")) {
        ScheduleBrowser* browser = window.workspace().feature<LibraryController>()->openScheduleBrowser();
        if (!line.schedule.isEmpty()) browser->choose(line.schedule);
        if (!waitUntil([&] { return browser->settled(); }, 60000)) return complain(5, QStringLiteral("the preview timed out"));
        dialog = browser;
    }
    if (line.show == QLatin1String("palette")) dialog = window.workspace().feature<PaletteController>()->open();
    if (line.show == QLatin1String("keys")) {
        showKeys(window.workspace());
        dialog = window.findChild<QDialog*>(QStringLiteral("keyMap"));
    }
    if (line.show == QLatin1String("preferences") || line.show == QLatin1String("hosts")) {
        window.workspace().actions()["preferences"]->trigger();
        dialog = window.findChild<QDialog*>(QStringLiteral("preferences"));
        if (auto* preferences = qobject_cast<PreferencesDialog*>(dialog); preferences && line.show == QLatin1String("hosts")) {
            preferences->showHosts();
            if (!waitUntil([&] { return preferences->hosts()->settled(); }, 20000)) return complain(5, QStringLiteral("the list of hosts timed out"));
        }
    }
    if (line.show == QLatin1String("block")) {
        BlockEditor* editor = window.workspace().feature<LibraryController>()->openBlockEditor(line.schedule);
        if (!waitUntil([&] { return editor->settled(); }, 60000)) return complain(5, QStringLiteral("the block's schedule timed out"));
        dialog = editor;
    }
    if (dialog != nullptr) {
        settle(200);
        const QPixmap over = dialog->grab();
        const double ratio = image.devicePixelRatio();
        const QSizeF size = over.deviceIndependentSize();
        const QPointF at((image.width() / ratio - size.width()) / 2, (image.height() / ratio - size.height()) / 2);
        QPainter painter(&image);
        painter.fillRect(QRectF(QPointF(), QSizeF(image.size()) / ratio), QColor(0, 0, 0, 90));
        painter.drawPixmap(at, over);
        painter.setPen(Theme::named(line.theme.value_or(ThemeName::Light)).faint); // a window manager's frame
        painter.drawRect(QRectF(at, size).adjusted(-0.5, -0.5, 0.5, 0.5));
    }
    if (!image.save(line.screenshot)) return complain(5, QStringLiteral("file %1 could not be written").arg(line.screenshot), QStringLiteral("use the suffix .png and a writable folder"));
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    QStringList words;
    for (int i = 1; i < argc; ++i)
        words << QString::fromLocal8Bit(argv[i]);
    const CommandLine line = parseCommandLine(words);
    if (line.help) {
        std::fputs(helpText().toUtf8().constData(), stdout);
        return 0;
    }
    if (line.version) {
        std::printf("stagewright-ui %s\n", stagewrightVersion);
        return 0;
    }
    if (!line.fault.isEmpty()) return complain(2, line.fault);

    const bool display = qEnvironmentVariableIsSet("DISPLAY") || qEnvironmentVariableIsSet("WAYLAND_DISPLAY");
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) {
        if (line.leaves())
            qputenv("QT_QPA_PLATFORM", "offscreen"); // the same picture with and without a display
        else if (!display)
            return complain(4, QStringLiteral("there is no display"), QStringLiteral("use --screenshot OUT.png or --export png -o OUT.png, or the program stagewright"));
    }
    QApplication::setApplicationName(QStringLiteral("stagewright"));
    QApplication::setOrganizationName(QStringLiteral("stagewright"));
    QApplication::setApplicationVersion(QString::fromLatin1(stagewrightVersion));
    if (!line.leaves()) applyTextScale(); // pictures don't depend on saved settings
    QApplication app(argc, argv);
    QGuiApplication::setDesktopFileName(QStringLiteral("org.stagewright.Stagewright"));
    QApplication::setWindowIcon(QIcon(QStringLiteral(":/stagewright/icon.png")));
    const QTemporaryDir nothing; // pictures don't depend on saved settings, and leave nothing behind
    if (line.leaves()) {
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, nothing.path());
        if (!line.lesson.isEmpty()) qputenv("XDG_DATA_HOME", nothing.path().toLocal8Bit()); // nor on lesson progress
    }

    auto* shown = new MainWindow; // windows delete themselves, unless the program exits after drawing
    MainWindow& window = *shown;
    const ThemeChoice choices[] = {ThemeChoice::Light, ThemeChoice::Dark, ThemeChoice::HighContrast};
    if (line.theme || line.leaves()) Appearance::choose(choices[static_cast<int>(line.theme.value_or(ThemeName::Light))]);
    if (line.leaves()) {
        const std::unique_ptr<MainWindow> drawn(shown);
        return drawAndLeave(window, line);
    }
    window.setAttribute(Qt::WA_DeleteOnClose);
    window.show();
    WindowSet::instance().keepSession();
    new EndSignals(&app);
    QTimer::singleShot(0, &window, [&] {
        if (line.files.isEmpty()) WindowSet::instance().restore(window);
        showAsked(window, line);
        if (!line.files.isEmpty() && waitUntil([&] { return window.workspace().settled(); }, 60000)) {
            if (!line.select.isEmpty()) window.workspace().feature<OpFinding>()->find(line.select);
            showPart(window, line);
        }
        if (line.lesson == QLatin1String("shelf"))
            window.workspace().feature<LessonController>()->openShelf();
        else if (!line.lesson.isEmpty())
            window.workspace().feature<LessonController>()->start(line.lesson, false, line.lessonPage);
        if (line.show == QLatin1String("record")) window.workspace().feature<Recording>()->openRecordDialog();
        if (line.show == QLatin1String("block")) window.workspace().feature<LibraryController>()->openBlockEditor(line.schedule);
        if (line.show == QLatin1String("import")) window.workspace().feature<ImportController>()->open();
        if (line.show == QLatin1String("new")) window.workspace().actions()["newSchedule"]->trigger();
    });
    return QApplication::exec();
}
